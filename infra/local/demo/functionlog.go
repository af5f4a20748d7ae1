package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// functionLog takes the functions' log lines: all of them into a file, and what a person follows onto the terminal,
// where Lambda's own START, END and REPORT lines and debug lines would hide it.
type functionLog struct {
	full, short io.Writer
}

// Write gets whole lines of the form "function request | text".
func (l *functionLog) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		if s, ok := shortenLine(line); ok {
			if _, err := fmt.Fprintln(l.short, s); err != nil {
				return 0, err
			}
		}
	}
	return l.full.Write(b)
}

func shortenLine(line string) (string, bool) {
	source, text, ok := strings.Cut(line, " | ")
	name, _, _ := strings.Cut(source, " ")
	if !ok {
		return "", false
	}
	var entry map[string]any
	if json.Unmarshal([]byte(text), &entry) != nil {
		trouble := strings.Contains(text, "Task timed out") || strings.Contains(text, "exited") ||
			strings.Contains(text, "panic")
		return fmt.Sprintf("     %-16s %s", name, strings.TrimSpace(text)), trouble
	}
	if entry["level"] == "DEBUG" || entry["_aws"] != nil { // metrics are for CloudWatch
		return "", false
	}
	out := fmt.Sprintf("     %-16s %v", name, entry["msg"])
	for _, k := range slices.Sorted(maps.Keys(entry)) {
		if k != "msg" && k != "level" && k != "time" {
			out += fmt.Sprintf(" %s=%v", k, entry[k])
		}
	}
	return cutLine(out), true
}

func cutLine(s string) string {
	const most = 180
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
