package pkg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostMethods bounds a type outside of tests and their support: what has more holds several ideas.
const mostMethods = 30

// manyMethods are the types that had more when the bound came, with as many as each may have. The list gets shorter and
// its numbers smaller; nothing is added.
func manyMethods() map[string]int {
	return map[string]int{
		"pkg/scheduling/binpack.problem":  97,
		"pkg/scheduling/binpack.solution": 109,
		"pkg/app.App":                     31,
		"infra/stack.joiner":              51,
		"infra/local/lambdahost.Host":     32,
		"infra/local/awsemulator.Cloud":   198,
	}
}

func TestNoTypeHasManyMethods(t *testing.T) {
	counts := map[string]int{}
	eachGoFile(t, func(folder string, f *ast.File) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				counts[folder+"."+receiverType(fn.Recv.List[0].Type)]++
			}
		}
	})
	if counts["pkg/disruption.State"] == 0 {
		t.Fatal("the methods of pkg/disruption.State were not found")
	}
	for name, n := range counts {
		if may := max(mostMethods, manyMethods()[name]); n > may {
			t.Errorf("%s has %d methods, more than %d: cut it along its data", name, n, may)
		}
	}
	for name := range manyMethods() {
		if counts[name] <= mostMethods {
			t.Errorf("%s has %d methods: take it off manyMethods()", name, counts[name])
		}
	}
}

// eachGoFile hands over every Go file of the repository but tests and what supports them.
func eachGoFile(t *testing.T, do func(folder string, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		folder := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), "../")
		switch {
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && name != ".." || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"),
			strings.HasPrefix(folder, "pkg/testing"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err == nil {
			do(folder, f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func receiverType(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiverType(x.X)
	case *ast.IndexExpr:
		return receiverType(x.X)
	case *ast.IndexListExpr:
		return receiverType(x.X)
	case *ast.Ident:
		return x.Name
	}
	return "?"
}

// TestLinksLeadSomewhere follows the links of the pages to files and headings of the repository.
func TestLinksLeadSomewhere(t *testing.T) {
	links := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	found := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range links.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			found++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = path.Join(path.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			} else if anchor != "" && !slices.Contains(headings(t, target), anchor) {
				t.Errorf("%s links to %s, which has no such heading", page, m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("%d links were found, want most of the pages' links", found)
	}
}

// pages are the pages of the repository.
func pages(t *testing.T) (out []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && name != ".." || d.Name() == "node_modules"):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".md"):
			out = append(out, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// headings are the anchors of a page's headings, as GitHub makes them.
func headings(t *testing.T, page string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	drop := regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			anchor := strings.ToLower(drop.ReplaceAllString(strings.TrimSpace(title), ""))
			out = append(out, strings.ReplaceAll(anchor, " ", "-"))
		}
	}
	return out
}
