package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReportCountsWhatChangesBehaviour(t *testing.T) {
	results := []result{
		{Mutant: `pkg/a/x.go f swap-operator "<" -> "<=" #1`, Outcome: killed, By: "pkg/a"},
		{Mutant: `pkg/a/x.go g flip-bool "true" -> "false" #1`, Line: 7, Outcome: survived},
		{Mutant: `pkg/a/x.go h flip-bool "true" -> "false" #1`, Outcome: survived},
		{Mutant: `pkg/b/y.go f drop-not "!" -> "" #1`, Line: 9, Outcome: uncovered},
		{Mutant: `pkg/b/y.go g drop-not "!" -> "" #1`, Outcome: invalid},
	}
	var out strings.Builder
	got := report(&out, 3, results, map[string]string{`pkg/a/x.go h flip-bool "true" -> "false" #1`: "a second net"})
	if diff := cmp.Diff(score{killed: 1, survived: 2, explained: 1}, got, cmp.AllowUnexported(score{})); diff != "" {
		t.Error(diff)
	}
	want := `survived	pkg/a/x.go g flip-bool "true" -> "false" #1 (line 7)
uncovered	pkg/b/y.go f drop-not "!" -> "" #1 (line 9)
pkg/a               1 noticed,   1 not,   1 make no difference:  50.0 %
pkg/b               0 noticed,   1 not,   0 make no difference:   0.0 %
seed 3: 4 mutants, 1 noticed, 2 not, 1 make no difference: 33.3 %
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestStateSurvivesALineThatWasCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.jsonl")
	whole := result{Mutant: "m", Line: 3, Outcome: killed, By: "pkg/a", Seconds: 1}
	if err := appendState(path, whole); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"Mutant":"n","Outc`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	done, err := readState(path)
	if diff := cmp.Diff(map[string]result{"m": whole}, done); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestCoveredBlock(t *testing.T) {
	for _, c := range []struct {
		line        string
		file        string
		first, last int
		ok          bool
	}{
		{"mode: set", "", 0, 0, false},
		{"joiner/pkg/scheduling/binpack/bin.go:12.34,15.2 3 1", "pkg/scheduling/binpack/bin.go", 12, 15, true},
		{"joiner/pkg/scheduling/binpack/bin.go:12.34,15.2 3 0", "", 0, 0, false},
		{"joiner/pkg/scheduling/binpack/bin.go:12.34,15.2 3 20", "pkg/scheduling/binpack/bin.go", 12, 15, true},
	} {
		file, first, last, ok := coveredBlock(c.line)
		if ok != c.ok || ok && (file != c.file || first != c.first || last != c.last) {
			t.Errorf("%s: got %s %d %d %v", c.line, file, first, last, ok)
		}
	}
}

func TestOwnTestsComeFirstAndSlowOnesLast(t *testing.T) {
	block := map[string][]int{"pkg/scheduling/binpack/bin.go": {10, 20}}
	all := []test{
		{Package: "pkg/testing/sim", Name: "TestSeeds", Took: 9 * time.Second, Covered: block},
		{Package: "pkg/cli", Name: "TestPlan", Took: 2 * time.Millisecond, Covered: block},
		{Package: "pkg/scheduling/binpack", Name: "TestWorlds", Took: 30 * time.Second, Covered: block},
		{Package: "pkg/cli", Name: "TestSlow", Took: 20 * time.Second, Covered: block},
		{Package: "pkg/cli", Name: "TestCommands", Took: 3 * time.Millisecond, Covered: block},
		{Package: "pkg/scheduling/binpack", Name: "TestScenarios", Took: 5 * time.Millisecond, Covered: block},
		{Package: "pkg/x", Name: "TestX", Covered: map[string][]int{"pkg/scheduling/binpack/bin.go": {21, 30}}},
	}
	for _, name := range []string{"TestRights", "TestRoles"} { // each starts a process of its own that takes long
		all = append(all, test{Package: "infra/stack", Name: name, Took: 6 * time.Second, Covered: block})
	}
	var got []string
	for _, b := range batches(mutant{File: "pkg/scheduling/binpack/bin.go", Line: 20}, all) {
		got = append(got, fmt.Sprint(b.path, " ", b.names, " ", b.took))
	}
	want := []string{
		"pkg/scheduling/binpack [TestScenarios] 5ms",
		"pkg/scheduling/binpack [TestWorlds] 30s",
		"pkg/cli [TestPlan TestCommands] 3ms",
		"infra/stack [TestRights TestRoles] 6s",
		"pkg/testing/sim [TestSeeds] 9s",
		"pkg/cli [TestSlow] 20s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsLeftToTry(t *testing.T) {
	again := options{again: true}
	for _, c := range []struct {
		before    outcome
		o         options
		explained bool
		want      bool
	}{
		{before: "", want: true},
		{before: killed, o: again},
		{before: postponed, want: true},
		{before: postponed, explained: true},
		{before: survived},
		{before: survived, o: again, want: true},
		{before: uncovered, o: again, want: true},
		{before: survived, o: again, explained: true},
		{before: invalid, o: again},
	} {
		if got := isLeft(result{Outcome: c.before}, c.o, c.explained); got != c.want {
			t.Errorf("%q, %+v, explained %v: got %v", c.before, c.o, c.explained, got)
		}
	}
}
