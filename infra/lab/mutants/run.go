package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
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
	By      []string `json:",omitempty"` // the test that noticed, or several of which one did
	Late    bool     `json:",omitempty"` // it noticed by not coming to its end
	Passed  []string `json:",omitempty"` // of one that is postponed: the tests that did not notice, as they were
	Seconds float64
}

// memoryKiB bounds what a mutated test may write to, so that one that never stops allocating ends alone. Address space
// has no bound: the runtime of the stack's tests reserves more than it uses.
const memoryKiB = 8 << 20

// trial is what all mutants are tried with.
type trial struct {
	tests  []test
	woven  *builder
	slow   time.Duration // batches from here on are postponed; 0 postpones none
	own    bool          // those of other packages are postponed
	number map[string]int

	mutex     sync.Mutex
	noticed   map[string]int           // by test: how many mutants
	confirmed map[string]time.Duration // by test: how long it takes with nothing changed
}

// try runs the tests that cover a mutant until one fails. Tests that have passed already are left out.
func (t *trial) try(ctx context.Context, m mutant, passed []string) (r result, err error) {
	start := time.Now()
	r = result{Mutant: m.id(), Line: m.Line, Outcome: survived}
	defer func() { r.Seconds = time.Since(start).Round(time.Millisecond).Seconds() }()
	t.mutex.Lock()
	all := batches(m, t.tests, t.noticed)
	t.mutex.Unlock()
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
		if tests = tests.without(passed); len(tests.names) == 0 {
			continue
		}
		if t.slow > 0 && tests.took >= t.slow || t.own && tests.path != filepath.Dir(m.File) {
			r.Outcome = postponed
			continue
		}
		r.By, r.Late, err = t.fails(ctx, b, m, tests)
		if err != nil {
			return r, err
		}
		if len(r.By) > 0 {
			r.Outcome = killed
			return r, nil
		}
		passed = append(passed, tests.versioned()...)
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
	return newBuilder(folder, t.woven.short, "-overlay", overlay), func() { os.RemoveAll(folder) }, err
}

// fails runs tests over the changed source and returns the one that failed, or all where that is not known, and none if
// all passed. Tests that take five times their usual time and a bit more fail.
func (t *trial) fails(ctx context.Context, b *builder, m mutant, tests batch) (by []string, late bool, err error) {
	binary, err := b.binary(ctx, tests.path)
	if err != nil {
		return nil, false, err
	}
	limit := 20*time.Second + 5*tests.took
	v, err := runTests(ctx, binary, tests, t.number[m.id()], limit)
	if err != nil || v.passed {
		return nil, false, err
	}
	if now, err := hashFiles([]string{tests.path}, anyFile); err != nil || now != tests.version {
		return nil, false, cmp.Or(err, fmt.Errorf("the files of %s have changed while its tests ran: run again", tests.path))
	}
	if v.failed != "" {
		tests.names = []string{v.failed}
	}
	took, err := t.confirm(ctx, tests)
	if err != nil {
		return nil, false, err
	}
	if now := 20*time.Second + 5*took; v.late && now > limit { // the machine has become slower
		again, err := runTests(ctx, binary, tests, t.number[m.id()], now)
		if err != nil || again.passed {
			return nil, false, err
		}
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, name := range tests.names {
		by = append(by, test{Package: tests.path, Name: name}.id())
	}
	t.count(by)
	return by, v.late, nil
}

// count keeps which test noticed, so that it is asked early.
func (t *trial) count(by []string) {
	if len(by) == 1 {
		t.noticed[by[0]]++
	}
}

// confirm runs tests that noticed a mutant with nothing changed, each once, and returns how long they take. An error
// says that they fail all the same, so that they have noticed nothing.
func (t *trial) confirm(ctx context.Context, tests batch) (time.Duration, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var took time.Duration
	for _, name := range tests.names {
		id := test{Package: tests.path, Name: name}.id()
		if _, known := t.confirmed[id]; !known {
			binary, err := t.woven.binary(ctx, tests.path)
			if err != nil {
				return 0, err
			}
			start := time.Now()
			one := batch{path: tests.path, names: []string{name}}
			v, err := runTests(ctx, binary, one, 0, 10*time.Minute)
			if err != nil {
				return 0, err
			}
			if !v.passed {
				return 0, fmt.Errorf("%s fails with nothing changed:\n%s", id, v.out)
			}
			t.confirmed[id] = time.Since(start)
		}
		took += t.confirmed[id]
	}
	return took, nil
}

// verdict is what tests say.
type verdict struct {
	passed bool
	failed string // the test that failed, if one said so
	late   bool   // they took too long
	out    []byte
}

// runTests runs tests of a binary with a mutant selected; 0 is the program as it is.
func runTests(ctx context.Context, binary string, tests batch, number int, limit time.Duration) (verdict, error) {
	bounded, cancel := context.WithTimeout(ctx, limit+time.Minute)
	defer cancel()
	c := exec.CommandContext(bounded, "/bin/sh", "-c", fmt.Sprintf("ulimit -d %d; exec \"$@\"", memoryKiB), "sh",
		binary, "-test.paniconexit0", "-test.failfast", "-test.timeout", limit.String(),
		"-test.run", exactly(tests.names))
	c.Dir = tests.path
	c.Env = append(os.Environ(), selector+"="+strconv.Itoa(number))
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		return verdict{}, ctx.Err()
	}
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		return verdict{}, fmt.Errorf("tests of %s: %w", tests.path, err)
	}
	v := readVerdict(out)
	v.passed = err == nil
	v.late = v.late || bounded.Err() != nil
	return v, nil
}

// readVerdict reads what a test binary that failed has written.
func readVerdict(out []byte) verdict {
	v := verdict{out: out, late: bytes.Contains(out, []byte("panic: test timed out after "))}
	if m := failedTest.FindSubmatch(out); m != nil {
		v.failed = string(m[1])
	}
	return v
}

// failedTest matches the line of a failed test that is none of another.
var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
