package env

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// newStopwatch returns a function that prints a line with the seconds since the line before.
func newStopwatch(w io.Writer) func(string) {
	last := time.Now()
	return func(line string) {
		fmt.Fprintf(w, "  %5.1f s  %s\n", time.Since(last).Seconds(), line)
		last = time.Now()
	}
}

// indentLines writes lines below the one that led to them.
func indentLines(w io.Writer) io.Writer { return indented{w} }

type indented struct{ w io.Writer }

func (i indented) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		if _, err := io.WriteString(i.w, "           "+line); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}
