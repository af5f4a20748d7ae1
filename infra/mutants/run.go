package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// outcome is what became of a mutant.
type outcome string

const (
	killed    outcome = "killed"    // a test failed, panicked or did not end
	survived  outcome = "survived"  // every test that runs the line passed
	postponed outcome = "postponed" // the tests that passed are not yet all that run the line; the slow ones are left
	uncovered outcome = "uncovered" // no test runs the line
	invalid   outcome = "invalid"   // it does not compile, so nobody could make it by mistake
)

// result is one line of the state file.
type result struct {
	Mutant  string
	Line    int
	Outcome outcome
	By      string   `json:",omitempty"` // the package whose tests noticed
	Passed  []string `json:",omitempty"` // of one that is postponed: the tests that did not notice
	Seconds float64
}

// memoryKiB bounds what a mutated test may take, so that one that never stops allocating ends alone.
const memoryKiB = 8 << 20

// trial is what all mutants are tried with.
type trial struct {
	tests  []test
	woven  *builder
	slow   time.Duration // batches from here on are postponed; 0 postpones none
	own    bool          // those of other packages are postponed
	number map[string]int
}

// try runs the tests that cover a mutant until one fails. Tests that have passed already are left out.
func (t *trial) try(ctx context.Context, m mutant, passed []string) (r result, err error) {
	start := time.Now()
	r = result{Mutant: m.id(), Line: m.Line, Outcome: survived}
	defer func() { r.Seconds = time.Since(start).Round(time.Millisecond).Seconds() }()
	all := batches(m, t.tests)
	if t.own {
		r.Outcome = postponed // what other packages notice is not known
	}
	if len(all) == 0 && !t.own {
		r.Outcome = uncovered
		return r, nil
	}
	b, done, err := t.builderFor(m)
	if err != nil {
		return r, err
	}
	defer done()
	for _, tests := range all {
		left := slices.DeleteFunc(slices.Clone(tests.names), func(name string) bool {
			return slices.Contains(passed, test{Package: tests.path, Name: name}.id())
		})
		if len(left) == 0 {
			continue
		}
		if t.slow > 0 && tests.took >= t.slow || t.own && tests.path != filepath.Dir(m.File) {
			r.Outcome = postponed
			continue
		}
		tests.names = left
		noticed, err := t.fails(ctx, b, m, tests)
		if err != nil {
			return r, err
		}
		if noticed {
			r.Outcome, r.By = killed, tests.path
			return r, nil
		}
		for _, name := range left {
			passed = append(passed, test{Package: tests.path, Name: name}.id())
		}
	}
	if r.Outcome == postponed {
		r.Passed = passed
	}
	return r, ctx.Err()
}

// builderFor returns what builds the tests of a mutant: the one for all that are woven, or one of its own.
func (t *trial) builderFor(m mutant) (b *builder, done func(), err error) {
	if m.woven() {
		return t.woven, func() {}, nil
	}
	folder, err := os.MkdirTemp("", "mutant-*")
	if err != nil {
		return nil, nil, err
	}
	source, err := os.ReadFile(m.File)
	if err != nil {
		return nil, nil, err
	}
	overlay, err := writeOverlay(folder, map[string][]byte{m.File: m.apply(source)})
	return newBuilder(folder, "-overlay", overlay), func() { os.RemoveAll(folder) }, err
}

// fails runs tests over the changed source. Tests that take five times their usual time and a bit more fail.
func (t *trial) fails(ctx context.Context, b *builder, m mutant, tests batch) (bool, error) {
	binary, err := b.binary(ctx, tests.path)
	if err != nil {
		return false, err
	}
	limit := 20*time.Second + 5*tests.took
	bounded, cancel := context.WithTimeout(ctx, limit+time.Minute)
	defer cancel()
	c := exec.CommandContext(bounded, "/bin/sh", "-c", fmt.Sprintf("ulimit -v %d; exec \"$@\"", memoryKiB), "sh",
		binary, "-test.paniconexit0", "-test.failfast", "-test.timeout", limit.String(),
		"-test.run", exactly(tests.names))
	c.Dir = tests.path
	c.Env = append(os.Environ(), selector+"="+strconv.Itoa(t.number[m.id()]))
	err = c.Run()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		return false, fmt.Errorf("tests of %s: %w", tests.path, err)
	}
	return err != nil, nil
}
