// Package shortrun decides what a short test run (go test -short) leaves out.
//
// Count is a flag for how many random cases a test plays, with one default for each kind of run. Of is the same without
// a flag, and Skip leaves a test out. make test runs short, make test-all runs everything.
package shortrun

import (
	"flag"
	"strconv"
	"testing"
)

// Count is the number of cases that a test plays: what its flag says, or a default that depends on go test -short.
type Count struct {
	set         bool
	n           int
	full, short int
}

// NewCount registers the flag of a count. Without the flag a full run plays full cases and a short one plays short.
func NewCount(name string, full, short int, usage string) *Count {
	c := &Count{full: full, short: short}
	flag.Var(c, name, usage)
	return c
}

// N returns the count. It is known once flags are parsed, that is within tests.
func (c *Count) N() int {
	if c.set {
		return c.n
	}
	return Of(c.full, c.short)
}

// Set implements flag.Value.
func (c *Count) Set(text string) error {
	n, err := strconv.Atoi(text)
	c.n, c.set = n, true
	return err
}

// String implements flag.Value. It shows the default of a full run.
func (c *Count) String() string {
	if c.set {
		return strconv.Itoa(c.n)
	}
	return strconv.Itoa(c.full)
}

// Of returns how many cases a test without a flag of its own plays: full, or short under go test -short.
func Of(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// Skip ends the test in a short run.
func Skip(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("go test -short leaves it out; make test-all runs it")
	}
}
