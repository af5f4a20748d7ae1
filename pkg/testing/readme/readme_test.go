package readme_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/testing/readme"
)

const root = "../../.."

// TestPagesKeepTheirLimits: pages are read when they are short, in sentences that are read once, in lines that fit.
func TestPagesKeepTheirLimits(t *testing.T) {
	pages, err := readme.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, most := range readme.Limits() {
		if n := readme.Words(pages[name]); n > most {
			t.Errorf("%s has %d words, its limit is %d: shorten it, or move numbers and lists to a page of results", name, n, most)
		}
		for _, long := range readme.LongSentences(pages[name]) {
			t.Errorf("%s: more than %d words in a sentence: %s", name, readme.MaxSentenceWords, long)
		}
		for _, wide := range readme.WideLines(pages[name]) {
			t.Errorf("%s: more than %d columns: %s", name, readme.MaxColumns, wide)
		}
	}
	sum := 0
	for _, most := range readme.SummedLimits() {
		sum += most
	}
	if sum > 11000 {
		t.Errorf("the limits are %d words together", sum)
	}
}

// TestEveryPageHasALimit: a page in the tree either has a limit or is a reference.
func TestEveryPageHasALimit(t *testing.T) {
	var got []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && d.Name() != ".github" &&
			(strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "cdk.out"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			name, err := filepath.Rel(root, path)
			got = append(got, filepath.ToSlash(name))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	want := slices.Concat(slices.Collect(maps.Keys(readme.Limits())), readme.References())
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Limits and References say -, the tree has +:\n%s", diff)
	}
}

func TestLongSentencesAreFound(t *testing.T) {
	thirty := strings.TrimSpace(strings.Repeat("word ", 30))
	for text, want := range map[string]int{
		thirty + ". " + thirty + ".":                            0,
		thirty + " `a span of code`.":                           1,
		thirty + "\ngoes on.":                                   1,
		thirty + "\n\nis another paragraph":                     0,
		"- " + thirty + "\n- item":                              0,
		"1. " + thirty + "\n   goes on":                         1,
		"| " + thirty + " | " + thirty + " |":                   0,
		"| " + thirty + " more | " + thirty + " |":              1,
		"| `a|b` " + thirty + " |":                              1,
		"text\n\n    " + thirty + " code":                       0,
		"```\n" + thirty + " code\n```":                         0,
		"# " + thirty + " heading":                              0,
		"<!-- " + thirty + " comment -->":                       0,
		thirty + " [" + thirty + "](link.md)":                   1,
		"[one two](" + strings.Repeat("x", 200) + ") " + thirty: 1,
	} {
		if got := readme.LongSentences(text); len(got) != want {
			t.Errorf("%q: got %q, want %d", text, got, want)
		}
	}
}

func TestWideLinesAreFound(t *testing.T) {
	wide := strings.Repeat("é", 121)
	for text, want := range map[string]int{
		strings.Repeat("é", 120): 0, wide: 1, "| " + wide: 0, "text\n\n    " + wide: 0, "text\n    " + wide: 1,
	} {
		if got := readme.WideLines(text); len(got) != want {
			t.Errorf("%q: got %q, want %d", text, got, want)
		}
	}
}

// The page of what is believed names the test that keeps each row: one that is there.
func TestWhatIsBelievedIsTested(t *testing.T) {
	pages, err := readme.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	const most = 1200
	page := pages["infra/security.md"]
	if n := readme.Words(page); n > most {
		t.Errorf("the page has %d words, more than %d", n, most)
	}
	missing := map[string]bool{}
	for _, name := range regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(page, -1) {
		missing[name[1]] = true
	}
	if len(missing) < 10 {
		t.Fatalf("the page names %d tests", len(missing))
	}
	for _, part := range []string{"infra", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, part), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				if d != nil && d.IsDir() && d.Name() == "node_modules" {
					return fs.SkipDir
				}
				return err
			}
			text, err := os.ReadFile(path)
			for name := range missing {
				if bytes.Contains(text, []byte("func "+name+"(")) {
					delete(missing, name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range missing {
		t.Errorf("the page names %s, which is nowhere", name)
	}
}

// TestEveryMeasurementHasARow: the page of what measures has a row for each folder of it.
func TestEveryMeasurementHasARow(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "infra/lab/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for folder, named := range map[string]string{"infra/lab": "", "infra/local/lab": "local/lab/"} {
		entries, err := os.ReadDir(filepath.Join(root, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() && !regexp.MustCompile(`(?m)^\| \[?`+named+e.Name()+`\b`).Match(page) {
				t.Errorf("infra/lab/README.md has no row of %s/%s", folder, e.Name())
			}
		}
	}
}

// TestDifferencesThatTheBenchNames: the comparison with Karpenter is not run by make test, and names rows of pages.
func TestDifferencesThatTheBenchNames(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "infra/lab/bench/compare/difference.go"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`page: "([^"]+)",\s+row:\s+"([^"]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(rows) < 5 {
		t.Errorf("only %d rows were found", len(rows))
	}
	for _, r := range rows {
		if page, err := os.ReadFile(filepath.Join(root, r[1])); err != nil || !strings.Contains(string(page), r[2]) {
			t.Errorf("%s says nothing of %q, %v", r[1], r[2], err)
		}
	}
}
