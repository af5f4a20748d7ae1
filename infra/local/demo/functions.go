package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// longestChain is how often a function may run in a chain of invocations that ask for each other, as in the simulator.
const longestChain = 8

// printFunctions prints what the functions did, and fails if one of them failed or gave an event up.
func (s *story) printFunctions() error {
	t := table.NewWriter()
	t.SetOutputMirror(os.Stdout)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"function", "invocations", "errors", "throttles", "cold starts", "init", "memory", "longest chain"})
	stats := s.Host.CurrentStats().Functions
	var failed []string
	for _, name := range slices.Sorted(maps.Keys(stats)) {
		f := stats[name]
		t.AppendRow(table.Row{name, f.Invocations, f.Errors, f.Throttles, len(f.Init), longestText(f.Init),
			fmt.Sprintf("%d MB", f.MaxMemoryMB), f.LongestChain})
		if f.LongestChain > longestChain || f.Recursions > 0 {
			failed = append(failed, fmt.Sprintf("%s ran %d times in a chain of invocations, of which Lambda takes 16 for a loop", name, f.LongestChain))
		}
		if f.Errors > 0 || f.GaveUp() > 0 {
			failed = append(failed, fmt.Sprintf("%s failed %d times and gave up %d events", name, f.Errors, f.GaveUp()))
		}
	}
	fmt.Println()
	t.Render()
	if len(failed) > 0 {
		return fmt.Errorf("functions failed although nothing was broken: %v", failed)
	}
	return nil
}

func longestText(d []time.Duration) string {
	if len(d) == 0 {
		return ""
	}
	return slices.Max(d).Round(time.Millisecond).String()
}
