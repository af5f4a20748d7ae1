package pkg_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// proof is one row of the tables in README.md that say which test would fail without a rule.
type proof struct {
	section, rule string
	by            []string // "path below pkg", or "path TestName", or "path TestName/a case of it"
}

// proofs are the rows of every table with the columns section, rule and proven by, of a page.
func proofs(page string) (out []proof) {
	cells := func(line string) []string {
		var list []string
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			list = append(list, strings.TrimSpace(cell))
		}
		return list
	}
	span := regexp.MustCompile("`([^`]+)`")
	inside := false
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		c := cells(line)
		switch {
		case cmp.Equal(c, []string{"section", "rule", "proven by"}):
			inside = true
		case !inside || strings.Trim(line, "|- \n") == "":
		case len(c) != 3:
			out = append(out, proof{rule: strings.TrimSpace(line)})
		default:
			p := proof{section: c[0], rule: c[1]}
			for _, s := range span.FindAllStringSubmatch(c[2], -1) {
				p.by = append(p.by, s[1])
			}
			out = append(out, p)
		}
	}
	return out
}

// unproven says what is wrong with a row, or nothing.
func unproven(p proof) (problems []string) {
	if !regexp.MustCompile(`^\d+(\.\d+)*(, \d+(\.\d+)*)*$`).MatchString(p.section) || p.rule == "" || len(p.by) == 0 {
		problems = append(problems, "it is not section, rule and `proof`")
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

// TestRulesNameTheirProof keeps the tables of rules true: every scenario and test that they name is there.
func TestRulesNameTheirProof(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := proofs(string(page))
	if len(rows) < 20 {
		t.Errorf("README.md has %d rows of rules: the tables are not found", len(rows))
	}
	for _, p := range rows {
		for _, problem := range unproven(p) {
			t.Errorf("README.md, section %s, %q: %s", p.section, p.rule, problem)
		}
	}
}

// TestRowsCanFail shows a row of each kind that is refused.
func TestRowsCanFail(t *testing.T) {
	rows := proofs("| a | b |\n|---|---|\n| 1 | 2 |\n\n| section | rule | proven by |\n|---|---|---|\n| 5.3 | order | `drain/testdata/order.txt`, `rules_test.go TestRowsCanFail/2.1` |\n" +
		"| five | x | `drain/testdata/order.txt` |\n| 1 | x | order.txt |\n| 1 | x |\n| 2.1, 3 | x | `drain/testdata/other.txt`, `rules_test.go TestOther`, `rules_test.go`, " +
		"`drain/testdata/order.txt TestX`, `rules_test.go TestRowsCanFail/` |\nEnd.\n| 9 | x | y |\n")
	var got []string
	for _, p := range rows {
		got = append(got, fmt.Sprintf("%s %s %d", p.section, p.rule, len(unproven(p))))
	}
	if diff := cmp.Diff([]string{"5.3 order 1", "five x 1", "1 x 1", " | 1 | x | 1", "2.1, 3 x 4"}, got); diff != "" {
		t.Error(diff)
	}
}
