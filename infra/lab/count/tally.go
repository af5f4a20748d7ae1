package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// tally is what was counted, by the first folder below pkg.
type tally struct {
	lines    map[string]int // that hold more than blanks and comments
	literals map[string]int // numbers other than 0, 1 and 2, of judged folders
	notation map[string]int // of these bases of numbers as text and shift counts, which nobody chose
	names    int            // exported in the folders below pkg/scheduling, without methods
}

// judged are the folders whose literals are counted: each that is no notation is a number that somebody chose, or
// measured.
func judged() []string { return []string{"disruption", "scheduling"} }

// countProduct counts the Go files below pkg, without tests, what supports them, and generated code.
func countProduct(root fs.FS) (tally, error) {
	t := tally{lines: map[string]int{}, literals: map[string]int{}, notation: map[string]int{}}
	err := fs.WalkDir(root, "pkg", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (name == "pkg/testing" || e.Name() == "testdata"):
			return fs.SkipDir
		case e.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		return t.addFile(root, name)
	})
	return t, err
}

// addFile counts a file, unless it is generated.
func (t *tally) addFile(root fs.FS, name string) error {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	if ast.IsGenerated(file) {
		return nil
	}
	room, _, below := strings.Cut(strings.TrimPrefix(name, "pkg/"), "/")
	if !below {
		room = "."
	}
	t.lines[room] += countLines(fset, file, string(text))
	for _, j := range judged() {
		if room == j {
			literals, notation := countLiterals(file)
			t.literals[room] += literals
			t.notation[room] += notation
		}
	}
	if strings.HasPrefix(name, "pkg/scheduling/") {
		t.names += countExported(file)
	}
	return nil
}

// countLines counts the lines of a file that hold more than blanks and comments.
func countLines(fset *token.FileSet, file *ast.File, text string) (n int) {
	rest := []byte(text)
	for _, group := range file.Comments {
		for _, c := range group.List {
			from, to := fset.Position(c.Pos()).Offset, fset.Position(c.End()).Offset
			for i := from; i < to; i++ {
				if rest[i] != '\n' {
					rest[i] = ' '
				}
			}
		}
	}
	for line := range strings.Lines(string(rest)) {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}

// countLiterals counts the numbers of a file that are neither 0, 1 nor 2, and how many of them are notation: the base
// of a number as text, or how far bits are shifted.
func countLiterals(file *ast.File) (all, notation int) {
	written := map[ast.Expr]bool{}
	ast.Inspect(file, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.BinaryExpr:
			written[x.Y] = written[x.Y] || x.Op == token.SHL || x.Op == token.SHR
		case *ast.CallExpr:
			if base := baseOf(x); base != nil {
				written[base] = true
			}
		case *ast.BasicLit:
			if x.Kind != token.INT && x.Kind != token.FLOAT || isSmall(x) {
				return true
			}
			if all++; written[x] {
				notation++
			}
		}
		return true
	})
	return all, notation
}

// isSmall reports whether the number is 0, 1 or 2.
func isSmall(lit *ast.BasicLit) bool {
	value := constant.MakeFromLiteral(lit.Value, lit.Kind, 0)
	for small := range int64(3) {
		if constant.Compare(value, token.EQL, constant.MakeInt64(small)) {
			return true
		}
	}
	return false
}

// baseOf is the argument of a call to strconv that is the base of a number as text, nil for other calls.
func baseOf(call *ast.CallExpr) ast.Expr {
	f, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return nil
	}
	at, known := map[string]int{"FormatInt": 1, "FormatUint": 1, "ParseInt": 1, "ParseUint": 1, "AppendInt": 2,
		"AppendUint": 2}[f.Sel.Name]
	if x, is := f.X.(*ast.Ident); !is || x.Name != "strconv" || !known || len(call.Args) <= at {
		return nil
	}
	return call.Args[at]
}

// countExported counts the exported types, functions, constants and variables of a file.
func countExported(file *ast.File) (n int) {
	add := func(name *ast.Ident) {
		if name.IsExported() {
			n++
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Name)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						add(name)
					}
				}
			}
		}
	}
	return n
}
