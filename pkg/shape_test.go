package pkg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostMethods bounds a type outside of tests and their support: what has more holds several ideas.
const mostMethods = 30

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
		if n > mostMethods {
			t.Errorf("%s has %d methods, more than %d: cut it along its data", name, n, mostMethods)
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
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution|parser.ParseComments)
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

// The top level holds what was agreed, and nothing that a tool or a test left there.
func TestTopLevel(t *testing.T) {
	agreed := []string{"LICENSE", "Makefile", "README.md", "cdk.json", "events", "functions", "go.mod", "go.sum", "infra", "pkg"}
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); !strings.HasPrefix(name, ".") && name != "cdk.out" && name != "cdk.context.json" && !slices.Contains(agreed, name) {
			t.Errorf("%s is none of what the top level holds: remove it, or agree on it", name)
		}
	}
}
