package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// outcome is what became of a mutant.
type outcome string

const (
	killed    outcome = "killed"    // a test failed, panicked or did not end
	survived  outcome = "survived"  // every test that runs the line passed
	uncovered outcome = "uncovered" // no test runs the line
	invalid   outcome = "invalid"   // it does not compile, so nobody could make it by mistake
)

// result is one line of the state file.
type result struct {
	Mutant  string
	Line    int
	Outcome outcome
	By      string `json:",omitempty"` // the package whose tests noticed
	Seconds float64
}

// memoryKiB bounds what a mutated test may take, so that one that never stops allocating ends alone.
const memoryKiB = 16 << 20

// try runs the tests that cover a mutant until one fails.
func try(ctx context.Context, m mutant, all []testPackage) (result, error) {
	start := time.Now()
	r := result{Mutant: m.id(), Line: m.Line, Outcome: survived}
	defer func() { r.Seconds = time.Since(start).Seconds() }()
	folder, err := os.MkdirTemp("", "mutant-*")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(folder)
	overlay, err := writeOverlay(folder, m)
	if err != nil {
		return r, err
	}
	if exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "./"+filepath.Dir(m.File)).Run() != nil {
		r.Outcome = invalid
		return r, ctx.Err()
	}
	tests := testsOf(m, all)
	if len(tests) == 0 {
		r.Outcome = uncovered
		return r, nil
	}
	for _, p := range tests {
		noticed, err := fails(ctx, overlay, p)
		if err != nil {
			return r, err
		}
		if noticed {
			r.Outcome, r.By = killed, p.Path
			break
		}
	}
	r.Seconds = time.Since(start).Seconds()
	return r, ctx.Err()
}

// fails runs the tests of a package over the changed source. Tests that do not end within five times their usual time
// fail.
func fails(ctx context.Context, overlay string, p testPackage) (bool, error) {
	limit := max(2*time.Minute, 5*p.Took)
	bounded, cancel := context.WithTimeout(ctx, limit+time.Minute)
	defer cancel()
	c := exec.CommandContext(bounded, "/bin/sh", "-c", fmt.Sprintf("ulimit -v %d; exec \"$@\"", memoryKiB), "sh",
		"go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-failfast", "-timeout", limit.String(), "./"+p.Path)
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err == nil {
		return false, nil
	}
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		return false, fmt.Errorf("tests of %s: %w", p.Path, err)
	}
	if strings.Contains(string(out), "[setup failed]") {
		return false, fmt.Errorf("tests of %s: %s", p.Path, out)
	}
	return true, nil
}

// writeOverlay writes the changed file and the list that has the Go command take it instead of the file in the work
// tree.
func writeOverlay(folder string, m mutant) (string, error) {
	path, err := filepath.Abs(m.File)
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(folder, filepath.Base(path))
	if err := os.WriteFile(changed, m.apply(source), 0o644); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o644)
}
