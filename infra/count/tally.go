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
}

// judged are the folders whose literals are counted: each is a number that somebody chose, or measured.
func judged() []string { return []string{"disruption", "scheduling"} }

// countProduct counts the Go files below pkg, without tests, what supports them, and generated code.
func countProduct(root fs.FS) (tally, error) {
	t := tally{lines: map[string]int{}, literals: map[string]int{}}
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
func (t tally) addFile(root fs.FS, name string) error {
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
			t.literals[room] += countLiterals(file)
		}
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

// countLiterals counts the numbers of a file that are neither 0, 1 nor 2.
func countLiterals(file *ast.File) (n int) {
	ast.Inspect(file, func(x ast.Node) bool {
		if lit, is := x.(*ast.BasicLit); is && (lit.Kind == token.INT || lit.Kind == token.FLOAT) {
			value := constant.MakeFromLiteral(lit.Value, lit.Kind, 0)
			common := false
			for small := range int64(3) {
				common = common || constant.Compare(value, token.EQL, constant.MakeInt64(small))
			}
			if !common {
				n++
			}
		}
		return true
	})
	return n
}
