package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReportCountsWhatChangesBehaviour(t *testing.T) {
	results := []result{
		{Mutant: `pkg/a/x.go f swap-operator "<" -> "<=" #1`, Outcome: killed, By: []string{"pkg/a.TestF"}, Late: true},
		{Mutant: `pkg/a/x.go g flip-bool "true" -> "false" #1`, Line: 7, Outcome: survived},
		{Mutant: `pkg/a/x.go h flip-bool "true" -> "false" #1`, Outcome: survived},
		{Mutant: `pkg/b/y.go f drop-not "!" -> "" #1`, Line: 9, Outcome: uncovered},
		{Mutant: `pkg/b/y.go g drop-not "!" -> "" #1`, Outcome: invalid},
	}
	var out strings.Builder
	got := report(&out, 3, results, map[string]string{`pkg/a/x.go h flip-bool "true" -> "false" #1`: "a second net"})
	if diff := cmp.Diff(score{killed: 1, late: 1, survived: 2, explained: 1}, got, cmp.AllowUnexported(score{})); diff != "" {
		t.Error(diff)
	}
	want := `survived	pkg/a/x.go g flip-bool "true" -> "false" #1 (line 7)
uncovered	pkg/b/y.go f drop-not "!" -> "" #1 (line 9)
pkg/a               1 noticed,   1 not,   1 make no difference:  50.0 %
pkg/b               0 noticed,   1 not,   0 make no difference:   0.0 %
seed 3: 4 mutants, 1 noticed (1 of them by a test that did not end), 2 not, 1 make no difference: 33.3 %
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestStateSurvivesALineThatWasCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.jsonl")
	whole := result{Mutant: "m", Line: 3, Outcome: killed, By: []string{"pkg/a.TestF"}, Seconds: 1}
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
		{"joiner.sh/pkg/scheduling/binpack/bin.go:12.34,15.2 3 1", "pkg/scheduling/binpack/bin.go", 12, 15, true},
		{"joiner.sh/pkg/scheduling/binpack/bin.go:12.34,15.2 3 0", "", 0, 0, false},
		{"joiner.sh/pkg/scheduling/binpack/bin.go:12.34,15.2 3 20", "pkg/scheduling/binpack/bin.go", 12, 15, true},
	} {
		file, first, last, ok := coveredBlock(c.line)
		if ok != c.ok || ok && (file != c.file || first != c.first || last != c.last) {
			t.Errorf("%s: got %s %d %d %v", c.line, file, first, last, ok)
		}
	}
}

func TestQuickTestsOfItsOwnComeFirstAndSlowOnesLast(t *testing.T) {
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
	noticed := map[string]int{"pkg/cli.TestSlow": 2}
	var got []string
	for _, b := range batches(mutant{File: "pkg/scheduling/binpack/bin.go", statement: 20}, all, noticed) {
		got = append(got, fmt.Sprint(b.path, " ", b.names, " ", b.took))
	}
	want := []string{
		"pkg/scheduling/binpack [TestScenarios] 5ms",
		"pkg/cli [TestPlan TestCommands] 3ms",
		"infra/stack [TestRights TestRoles] 6s",
		"pkg/cli [TestSlow] 20s",
		"pkg/testing/sim [TestSeeds] 9s",
		"pkg/scheduling/binpack [TestWorlds] 30s",
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

// TestExplainedMutantsExist refuses a reason whose code has changed: it may not hold any more.
func TestExplainedMutantsExist(t *testing.T) {
	if _, _, _, err := findKinds(filepath.Join("..", "..", ".."), "operators"); err != nil {
		t.Error(err)
	}
}

func TestExplainedNamesMutantsOnceWithReasons(t *testing.T) {
	m := mutant{File: "pkg/a/x.go", Function: "f", Operator: "drop-not", From: "!", Nth: 1}
	for _, c := range []struct{ text, want string }{
		{"# Why.\n" + m.id() + "\tno difference\n", ""},
		{m.id() + "\n", "want mutant, tab, reason"},
		{m.id() + "\t \n", "want mutant, tab, reason"},
		{strings.Replace(m.id(), "#1", "#2", 1) + "\tno difference\n", "no such mutant"},
		{strings.Repeat(m.id()+"\tno difference\n", 2), "explained twice"},
	} {
		path := filepath.Join(t.TempDir(), "explained.tsv")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readExplained(path, []mutant{m})
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.text, err, c.want)
		}
	}
}

func TestVerdictOfAFailure(t *testing.T) {
	for _, c := range []struct {
		out    string
		failed string
		late   bool
	}{
		{"--- FAIL: TestScenarios (0.31s)\n    --- FAIL: TestScenarios/a.txt (0.00s)\nFAIL\n", "TestScenarios", false},
		{"panic: runtime error: index out of range [3] with length 3\n\ngoroutine 7 [running]:\n", "", false},
		{"panic: test timed out after 20s\n\trunning tests:\n\t\tTestWorlds (20s)\n", "", true},
		{"fatal error: runtime: out of memory\n", "", false},
	} {
		if got := readVerdict([]byte(c.out)); got.failed != c.failed || got.late != c.late {
			t.Errorf("%q: got %q, %v", c.out, got.failed, got.late)
		}
	}
}

// alwaysFails is a package with a test that notices a mutant, one that fails with and without it, and one that passes.
const alwaysFails = `package small

import (
	"os"
	"testing"
)

var mutated = os.Getenv("JOINER_MUTANT") != "0"

func TestNotices(t *testing.T) {
	if mutated {
		t.Error("noticed")
	}
}

func TestAlwaysFails(t *testing.T) { t.Error("as always") }

func TestPasses(*testing.T) {}
`

func TestAFailureCountsOnlyIfTheTestPassesUnchanged(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"go.mod": "module small\n", "small/small_test.go": alwaysFails} {
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now, err := hashFiles([]string{"small"}, anyFile)
	if err != nil {
		t.Fatal(err)
	}
	b := newBuilder(t.TempDir(), false)
	tr := &trial{woven: b, number: map[string]int{mutant{}.id(): 1}, noticed: map[string]int{}, confirmed: map[string]time.Duration{}}
	for _, c := range []struct {
		names, by []string
		version   string
		err       string
	}{
		{names: []string{"TestPasses"}},
		{names: []string{"TestNotices"}, version: "before", err: "the files of small have changed"},
		{names: []string{"TestPasses", "TestNotices"}, by: []string{"small.TestNotices"}},
		{names: []string{"TestAlwaysFails"}, err: "small.TestAlwaysFails fails with nothing changed"},
	} {
		version := now
		if c.version != "" {
			version = c.version
		}
		by, late, err := tr.fails(t.Context(), b, mutant{}, batch{path: "small", version: version, names: c.names})
		if !slices.Equal(by, c.by) || late || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v: got %v, %v, %v", c.names, by, late, err)
		}
	}
}

func TestATestThatHasChangedIsAskedAgain(t *testing.T) {
	passed := batch{path: "pkg/a", version: "1", names: []string{"TestF", "TestG"}}.versioned()
	for version, want := range map[string][]string{"1": {"TestH"}, "2": {"TestF", "TestG", "TestH"}} {
		b := batch{path: "pkg/a", version: version, names: []string{"TestF", "TestG", "TestH"}}
		if diff := cmp.Diff(want, b.without(passed).names); diff != "" {
			t.Errorf("version %s: %s", version, diff)
		}
	}
}

// Binaries of a short builder run as go test -short does.
func TestShortRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "package small\n\nimport \"testing\"\n\nfunc TestShort(t *testing.T) {\n\tif !testing.Short() {\n\t\tt.Error(\"long\")\n\t}\n}\n"
	for name, text := range map[string]string{"go.mod": "module small\n", "small/small_test.go": text} {
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, short := range []bool{true, false} {
		binary, err := newBuilder(t.TempDir(), short).binary(t.Context(), "small")
		if err != nil {
			t.Fatal(err)
		}
		v, err := runTests(t.Context(), binary, batch{path: "small", names: []string{"TestShort"}}, 0, time.Minute)
		if err != nil || v.passed != short {
			t.Errorf("short: %t, passed: %t, error %v\n%s", short, v.passed, err, v.out)
		}
	}
}
