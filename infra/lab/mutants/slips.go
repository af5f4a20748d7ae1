package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// kinds is what a run draws: where mutants are looked for, and which.
type kinds struct {
	name  string // empty for the first kinds, whose state files and samples stay as they are
	areas []string
	slips bool
}

// kindsNamed returns the kinds of that name: operators, or slips over adapters and controllers below root.
func kindsNamed(root, name string) (kinds, error) {
	switch name {
	case "operators":
		return kinds{areas: areas()}, nil
	case "slips":
		found, err := slipAreas(root)
		return kinds{name: name + "-", areas: found, slips: true}, err
	}
	return kinds{}, fmt.Errorf("-kinds %s: want operators or slips", name)
}

// slipAreas returns the packages that stand between pure decisions and the world: adapters, controllers and what wires
// them.
func slipAreas(root string) ([]string, error) {
	found := []string{"pkg/app"}
	for _, below := range []string{"pkg/controllers", "pkg/providers"} {
		err := filepath.WalkDir(filepath.Join(root, below), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			if !slices.Contains(found, folder) {
				found = append(found, folder)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(found)
	return found, nil
}

// takeTurns brings mutants that are sorted by rank into an order in which each operator has its turn.
func takeTurns(all []mutant) {
	drawn := map[string]int{}
	turn := make(map[string]int, len(all))
	for _, m := range all {
		turn[m.id()] = drawn[m.Operator]
		drawn[m.Operator]++
	}
	slices.SortStableFunc(all, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(turn[a.id()], turn[b.id()]), cmp.Compare(a.Operator, b.Operator))
	})
}

// visitSlip looks at one node for what people forget or mix up between correct lines.
func (f *finder) visitSlip(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.BinaryExpr:
		f.dropClause(n)
	case *ast.CaseClause:
		f.dropItems("drop-clause", n.List)
		f.slipsOfBlock(n.Body)
	case *ast.CallExpr:
		if isSelector(n.Fun, "cmp", "Or") {
			f.dropItems("drop-clause", n.Args)
		}
	case *ast.IndexExpr:
		f.changeKey(n)
	case *ast.CompositeLit:
		f.forgetField(n)
	case *ast.IfStmt:
		f.loseBranch(n)
	case *ast.ReturnStmt:
		f.loseResult(n)
	case *ast.BlockStmt:
		f.slipsOfBlock(n.List)
	}
	return true
}

// dropClause leaves one clause out of a condition.
func (f *finder) dropClause(n *ast.BinaryExpr) {
	if n.Op == token.LAND || n.Op == token.LOR {
		f.add("drop-clause", n.X.Pos(), f.between(n.X.Pos(), n.Y.Pos()), "")
		f.add("drop-clause", n.X.End(), f.between(n.X.End(), n.Y.End()), "")
	}
}

// dropItems leaves one item out of a list, with its comma.
func (f *finder) dropItems(operator string, list []ast.Expr) {
	for i := range list {
		switch {
		case len(list) < 2:
		case i+1 < len(list):
			f.add(operator, list[i].Pos(), f.between(list[i].Pos(), list[i+1].Pos()), "")
		default:
			f.add(operator, list[i-1].End(), f.between(list[i-1].End(), list[i].End()), "")
		}
	}
}

// forgetField leaves one field out of a composite literal that names them.
func (f *finder) forgetField(n *ast.CompositeLit) {
	for _, e := range n.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); !ok || !isName(pair.Key) {
			return
		}
	}
	if len(n.Elts) == 1 {
		f.add("forget-field", n.Lbrace+1, f.between(n.Lbrace+1, n.Rbrace), "")
		return
	}
	f.dropItems("forget-field", n.Elts)
}

// changeKey looks up another key: the next one by which the file looks something up. Places in lists are left alone.
func (f *finder) changeKey(n *ast.IndexExpr) {
	keys := f.keys()
	at := slices.Index(keys, f.text(n.Index))
	if at < 0 || len(keys) < 2 {
		return
	}
	for i := 1; i <= min(3, len(keys)-1); i++ {
		f.add("other-key", n.Index.Pos(), keys[at], keys[(at+i)%len(keys)])
	}
}

// keys returns the distinct expressions by which the file looks something up, in the order of the source.
func (f *finder) keys() []string {
	if f.lookups != nil {
		return f.lookups
	}
	f.lookups = []string{}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if n, ok := n.(*ast.IndexExpr); ok && !isPlace(n.Index) && !slices.Contains(f.lookups, f.text(n.Index)) {
			f.lookups = append(f.lookups, f.text(n.Index))
		}
		return true
	})
	return f.lookups
}

// isPlace says whether an index looks like a place in a list: a number, arithmetic, or a name of one letter.
func isPlace(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.INT
	case *ast.Ident:
		return len(e.Name) == 1
	case *ast.BinaryExpr:
		return e.Op != token.ADD || isPlace(e.X) || isPlace(e.Y)
	}
	return false
}

// loseBranch goes on after an error as if there were none.
func (f *finder) loseBranch(n *ast.IfStmt) {
	if c, ok := n.Cond.(*ast.BinaryExpr); ok && c.Op == token.NEQ && isError(c.X) {
		f.add("lose-error", c.Pos(), f.text(c), "false && "+f.text(c))
	}
}

// loseResult returns no error in place of one.
func (f *finder) loseResult(n *ast.ReturnStmt) {
	if len(n.Results) == 0 {
		return
	}
	last := n.Results[len(n.Results)-1]
	call, ok := last.(*ast.CallExpr)
	if isError(last) || ok && (isSelector(call.Fun, "fmt", "Errorf") || isSelector(call.Fun, "errors", "Join") ||
		isSelector(call.Fun, "errors", "New")) {
		f.add("lose-error", last.Pos(), f.text(last), "nil")
	}
}

// slipsOfBlock swaps adjacent calls, and forgets assignments to fields.
func (f *finder) slipsOfBlock(list []ast.Stmt) {
	for i, s := range list {
		if a, ok := s.(*ast.AssignStmt); ok && a.Tok == token.ASSIGN && len(a.Lhs) == 1 {
			if _, field := a.Lhs[0].(*ast.SelectorExpr); field {
				f.add("forget-field", s.Pos(), f.text(s), "")
				f.beginsAt(s)
			}
		}
		if i+1 < len(list) && calls(s) && calls(list[i+1]) {
			next := list[i+1]
			f.add("swap-calls", s.Pos(), f.between(s.Pos(), next.End()),
				f.text(next)+f.between(s.End(), next.Pos())+f.text(s))
			f.beginsAt(s)
		}
	}
}

// beginsAt says that tests which come to the statement run the mutant found last.
func (f *finder) beginsAt(s ast.Stmt) {
	f.found[len(f.found)-1].statement = f.set.Position(s.Pos()).Line
}

// calls says whether a statement is there for a call: alone, for its error, or for what it assigns.
func calls(s ast.Stmt) bool {
	var e ast.Expr
	switch s := s.(type) {
	case *ast.ExprStmt:
		e = s.X
	case *ast.AssignStmt:
		e = s.Rhs[0]
	case *ast.IfStmt:
		if a, ok := s.Init.(*ast.AssignStmt); ok {
			e = a.Rhs[0]
		}
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := call.Fun.(*ast.Ident)
	return !ok || !slices.Contains([]string{"len", "cap", "make", "new", "append", "min", "max"}, name.Name)
}

func isName(e ast.Expr) bool {
	_, ok := e.(*ast.Ident)
	return ok
}

func isError(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && strings.HasPrefix(strings.ToLower(name.Name), "err")
}

func isSelector(e ast.Expr, of, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == of
}

func (f *finder) between(from, to token.Pos) string {
	return string(f.source[f.set.Position(from).Offset:f.set.Position(to).Offset])
}
