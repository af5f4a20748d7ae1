package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"joiner/infra/local/host"
)

// functions prints what the functions did, and fails if one of them failed or gave an event up.
func (s *story) functions() error {
	t := table.NewWriter()
	t.SetOutputMirror(os.Stdout)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"function", "invocations", "errors", "throttles", "cold starts", "init", "memory"})
	stats := s.Host.Stats().Functions
	var failed []string
	for _, name := range slices.Sorted(maps.Keys(stats)) {
		f := stats[name]
		t.AppendRow(table.Row{name, f.Invocations, f.Errors, f.Throttles, len(f.Init), longest(f.Init), fmt.Sprintf("%d MB", f.MaxMemoryMB)})
		if f.Errors > 0 || lost(f.DeadLetters) > 0 {
			failed = append(failed, fmt.Sprintf("%s failed %d times and gave up %d events", name, f.Errors, lost(f.DeadLetters)))
		}
	}
	fmt.Println()
	t.Render()
	if len(failed) > 0 {
		return fmt.Errorf("functions failed although nothing was broken: %v", failed)
	}
	return nil
}

// lost counts the events that a function failed on until the end. A tick or a wake-up that grew too old behind a busy function
// is none: that function was doing what it asks for.
func lost(letters []host.DeadLetter) (n int) {
	for _, l := range letters {
		if l.Condition == "RetriesExhausted" {
			n++
		}
	}
	return n
}

func longest(d []time.Duration) string {
	if len(d) == 0 {
		return ""
	}
	return slices.Max(d).Round(time.Millisecond).String()
}
