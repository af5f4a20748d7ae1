package disruption

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// The rule about which reason of a node holds stands in verdict.go, and no other file writes a verdict.
func TestVerdictsHaveOneWriter(t *testing.T) {
	files := token.NewFileSet()
	parse := func(name string) *ast.File {
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	written := map[string]bool{"verdict": true}
	fields := func(n ast.Node) bool {
		if s, ok := n.(*ast.TypeSpec); ok && s.Name.Name == "verdict" {
			for _, f := range s.Type.(*ast.StructType).Fields.List {
				written[f.Names[0].Name] = true
			}
		}
		return true
	}
	ast.Inspect(parse("verdict.go"), fields)
	if len(written) < 2 {
		t.Fatal("verdict.go does not declare the fields of verdict")
	}
	check := func(x ast.Expr) {
		if s, ok := ast.Unparen(x).(*ast.SelectorExpr); ok && written[s.Sel.Name] {
			t.Errorf("%s: only methods in verdict.go write %s", files.Position(x.Pos()), s.Sel.Name)
		}
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "verdict.go" || !strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		ast.Inspect(parse(e.Name()), func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, x := range n.Lhs {
					check(x)
					if s, ok := ast.Unparen(x).(*ast.SelectorExpr); ok {
						check(s.X) // n.blocked.reason = …
					}
				}
			case *ast.IncDecStmt:
				check(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					check(n.X)
				}
			case *ast.CompositeLit:
				if id, ok := n.Type.(*ast.Ident); ok && id.Name == "verdict" {
					t.Errorf("%s: only verdict.go makes a verdict", files.Position(n.Pos()))
				}
			}
			return true
		})
	}
}
