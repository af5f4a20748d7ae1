package sim

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"
)

// Violation is a broken invariant.
type Violation struct {
	Invariant string        // a word or two, the same for the same rule
	What      string        // a sentence with names
	At        time.Duration // since the start of the run
}

// String says it in one line.
func (v Violation) String() string { return fmt.Sprintf("at %s: %s: %s", v.At, v.Invariant, v.What) }

// tail is the number of lines of the trace that are kept for a violation.
const tail = 120

// trace is the story of a run: its last lines, or all of them, and a sum of all.
type trace struct {
	all   bool
	lines []string
	sum   uint64
	count int
}

func (t *trace) addLine(line string) {
	h := fnv.New64a()
	fmt.Fprint(h, t.sum, line)
	t.sum = h.Sum64()
	t.count++
	t.lines = append(t.lines, line)
	if !t.all && len(t.lines) > 4*tail {
		t.lines = append([]string(nil), t.lines[len(t.lines)-tail:]...)
	}
}

func (t *trace) asText() string {
	lines := t.lines
	if !t.all && len(lines) > tail {
		lines = lines[len(lines)-tail:]
	}
	return strings.Join(lines, "\n")
}
