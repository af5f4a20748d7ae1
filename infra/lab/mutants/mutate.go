package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
)

// mutant is one small change of one source file, as a person could make it by mistake.
type mutant struct {
	File     string // from the repository's root
	Function string // the function around it, with its receiver's type; empty for variables of the package
	Operator string // what kind of change it is
	From, To string // the source text and what stands there instead
	Nth      int    // which of the equal ones of the function it is, from 1
	Line     int    // from 1
	offset   int    // where From begins, in bytes

	// statement is the line on which the statement around the mutant begins. Tests that come to it run the mutant. What
	// the compiler counts as covered leaves out lines after a function literal, and cases that are not entered.
	statement int
}

// id names a mutant in the state file, in the list of explained ones and in reports. It stays when the lines of the
// file move.
func (m mutant) id() string {
	return fmt.Sprintf("%s %s %s %s -> %s #%d", m.File, m.Function, m.Operator, strconv.Quote(m.From),
		strconv.Quote(m.To), m.Nth)
}

// apply returns the file's source with the change in it.
func (m mutant) apply(source []byte) []byte {
	return slices.Concat(source[:m.offset], []byte(m.To), source[m.offset+len(m.From):])
}

// woven says whether the mutant is in a function, so that one build can have it beside others.
func (m mutant) woven() bool { return m.Function != "" }

// finder collects the mutants of one file.
type finder struct {
	file   string
	source []byte
	tree   *ast.File
	set    *token.FileSet
	slips  bool           // collect slips instead of operators
	inside string         // the function that is being looked at
	around ast.Stmt       // the innermost statement that is; a block or a case is none
	seen   map[string]int // how many equal ones came before
	found  []mutant

	lookups []string // see keys
}

// findMutants returns every mutant of a file, or every slip instead, in the order of the source. Some of them do not
// compile; the run sorts those out.
func findMutants(file string, source []byte, slips bool) ([]mutant, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(tree) {
		return nil, nil
	}
	f := &finder{file: file, source: source, tree: tree, set: set, slips: slips, seen: map[string]int{}}
	for _, d := range tree.Decls {
		f.inside = functionName(d)
		ast.PreorderStack(d, nil, f.visitBelow)
	}
	for i := range f.found {
		m := &f.found[i]
		key := m.id()
		f.seen[key]++
		m.Nth = f.seen[key]
	}
	slices.SortStableFunc(f.found, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.To, b.To))
	})
	return f.found, nil
}

// functionName returns the name of a declared function, with its receiver's type before it.
func functionName(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return ""
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	kind := f.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if generic, ok := kind.(*ast.IndexExpr); ok {
		kind = generic.X
	}
	if name, ok := kind.(*ast.Ident); ok {
		return name.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// visitBelow looks at one node below others, the outermost first.
func (f *finder) visitBelow(n ast.Node, above []ast.Node) bool {
	f.around = nil
	for _, a := range append(slices.Clone(above), n) {
		switch a := a.(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		case ast.Stmt:
			f.around = a
		}
	}
	if f.slips {
		return f.visitSlip(n)
	}
	return f.visit(n)
}

// visit looks at one node. Declarations of constants and types are left alone: they say names, not what is done.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.BinaryExpr:
		f.swapOperator(n)
		f.dropOperand(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.add("drop-not", n.OpPos, "!", "")
		}
	case *ast.IncDecStmt:
		other := map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok]
		f.add("swap-operator", n.TokPos, n.Tok.String(), other)
	case *ast.Ident:
		if other, ok := map[string]string{"true": "false", "false": "true"}[n.Name]; ok {
			f.add("flip-bool", n.Pos(), n.Name, other)
		}
	case *ast.BasicLit:
		f.shiftNumber(n)
	case *ast.IfStmt:
		f.add("skip-branch", n.Cond.Pos(), f.text(n.Cond), "false && ("+f.text(n.Cond)+")")
	case *ast.BlockStmt:
		f.dropStatements(n.List)
	case *ast.CaseClause:
		f.dropStatements(n.Body)
	case *ast.CallExpr:
		f.swapExtreme(n)
	}
	return true
}

// swapOperator exchanges an operator for the one that people confuse it with.
func (f *finder) swapOperator(n *ast.BinaryExpr) {
	others := map[token.Token][]string{
		token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<="}, token.GEQ: {">", "<"},
		token.EQL: {"!="}, token.NEQ: {"=="},
		token.LAND: {"||"}, token.LOR: {"&&"},
		token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"},
	}
	for _, other := range others[n.Op] {
		f.add("swap-operator", n.OpPos, n.Op.String(), other)
	}
}

// dropOperand forgets one of two conditions.
func (f *finder) dropOperand(n *ast.BinaryExpr) {
	neutral, ok := map[token.Token]string{token.LAND: "true", token.LOR: "false"}[n.Op]
	if !ok {
		return
	}
	f.add("drop-condition", n.X.Pos(), f.text(n.X), neutral)
	f.add("drop-condition", n.Y.Pos(), f.text(n.Y), neutral)
}

// shiftNumber makes a number one larger.
func (f *finder) shiftNumber(n *ast.BasicLit) {
	if n.Kind != token.INT {
		return
	}
	if v, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
		f.add("shift-number", n.Pos(), n.Value, strconv.FormatInt(v+1, 10))
	}
}

// swapExtreme exchanges min and max.
func (f *finder) swapExtreme(n *ast.CallExpr) {
	name, ok := n.Fun.(*ast.Ident)
	if !ok {
		return
	}
	if other, ok := map[string]string{"min": "max", "max": "min"}[name.Name]; ok && len(n.Args) > 1 {
		f.add("swap-extreme", name.Pos(), name.Name, other)
	}
}

// dropStatements forgets one statement of a block: a call, an assignment to what exists already, a continue or a break.
func (f *finder) dropStatements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
		case *ast.BranchStmt:
			if s.Tok != token.CONTINUE && s.Tok != token.BREAK {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		default:
			continue
		}
		f.add("drop-statement", s.Pos(), f.text(s), "")
	}
}

func (f *finder) text(n ast.Node) string {
	return f.between(n.Pos(), n.End())
}

func (f *finder) add(operator string, at token.Pos, from, to string) {
	p := f.set.Position(at)
	m := mutant{File: f.file, Function: f.inside, Operator: operator, From: from, To: to,
		Line: p.Line, offset: p.Offset, statement: p.Line}
	if f.around != nil && operator != "drop-statement" {
		m.statement = f.set.Position(f.around.Pos()).Line
	}
	f.found = append(f.found, m)
}
