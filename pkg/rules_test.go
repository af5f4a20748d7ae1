package pkg_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rulesFile lists the rules, one a line: the rule, then what proves it, with tabs between.
const rulesFile = "testing/rules.tsv"

// ruleProof is one row of the rules file.
type ruleProof struct {
	rule string
	by   []string // "path below pkg", or "path TestName", or "path TestName/a case of it"
}

// readRuleProofs returns the rows of a rules file. Lines that begin with # are comments.
func readRuleProofs(text string) (rows []ruleProof) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "\t")
		rows = append(rows, ruleProof{cells[0], cells[1:]})
	}
	return rows
}

// findProofProblems says what is wrong with a row, or nothing.
func findProofProblems(p ruleProof) (problems []string) {
	if p.rule == "" || len(p.by) == 0 {
		problems = append(problems, "it is not a rule and its proofs, with tabs between")
	}
	for _, by := range p.by {
		path, test, _ := strings.Cut(by, " ")
		text, err := os.ReadFile(filepath.FromSlash(path))
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", path, err))
			continue
		}
		name, part, _ := strings.Cut(test, "/")
		switch {
		case strings.HasSuffix(path, "_test.go") == (test == ""):
			problems = append(problems, path+" is no scenario and names no test, or the other way round")
		case test != "" && !strings.Contains(string(text), "\nfunc "+name+"("):
			problems = append(problems, path+" has no "+name)
		case part != "" && !strings.Contains(string(text), `"`+part+`"`):
			problems = append(problems, fmt.Sprintf("%s has no case %q", path, part))
		}
	}
	return problems
}

// TestRulesNameTheirProof keeps the list of rules true: every scenario and test that it names is there.
func TestRulesNameTheirProof(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash(rulesFile))
	if err != nil {
		t.Fatal(err)
	}
	rows := readRuleProofs(string(text))
	if len(rows) < 100 {
		t.Errorf("%s has %d rows: it is cut short", rulesFile, len(rows))
	}
	for _, p := range rows {
		for _, problem := range findProofProblems(p) {
			t.Errorf("%s, %q: %s", rulesFile, p.rule, problem)
		}
	}
}

// TestRowsCanFail shows a row of each kind that is refused.
func TestRowsCanFail(t *testing.T) {
	const order, part = "nodeclaim/drain/testdata/order.txt", "a case"
	rows := readRuleProofs("# a comment\norder\t" + order + "\trules_test.go TestRowsCanFail/" + part + "\n\n" +
		"no proof\n" +
		"x\tnodeclaim/drain/testdata/other.txt\trules_test.go TestOther\trules_test.go\t" + order + " TestX\trules_test.go TestRowsCanFail/another\n")
	var got []int
	for _, p := range rows {
		got = append(got, len(findProofProblems(p)))
	}
	if want := []int{0, 1, 5}; !cmp.Equal(got, want) {
		t.Errorf("problems of the rows: %v, want %v", got, want)
	}
}
