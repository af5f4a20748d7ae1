package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// checker says which mutants compile, without a run of the compiler for each.
type checker struct {
	exports map[string]string   // by import path: the file with what the compiler knows of the package
	files   map[string][]string // by folder: the Go files of the package

	set      *token.FileSet
	importer types.Importer // keeps what it has read
}

// newChecker asks the go command for what the areas consist of and import.
func newChecker(ctx context.Context, areas []string) (*checker, error) {
	args := []string{"list", "-export", "-deps", "-f",
		`{{.ImportPath}}|{{.Export}}|{{join .GoFiles " "}}`}
	for _, a := range areas {
		args = append(args, "./"+a)
	}
	out, err := exec.CommandContext(ctx, "go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	c := &checker{exports: map[string]string{}, files: map[string][]string{}, set: token.NewFileSet()}
	c.importer = importer.ForCompiler(c.set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(c.exports[path])
	})
	for line := range strings.Lines(string(out)) {
		words := strings.Split(strings.TrimSpace(line), "|")
		if len(words) != 3 {
			return nil, fmt.Errorf("list packages: %s", line)
		}
		c.exports[words[0]] = words[1]
		if folder, ok := strings.CutPrefix(words[0], module); ok {
			c.files[folder] = strings.Fields(words[2])
		}
	}
	return c, nil
}

// compiles says whether the package of a mutant still compiles. Functions of other files are looked at without their
// bodies, which a change of one function cannot spoil.
func (c *checker) compiles(m mutant) (bool, error) {
	source, err := os.ReadFile(m.File)
	if err != nil {
		return false, err
	}
	set := c.set
	changed, err := parser.ParseFile(set, m.File, m.apply(source), parser.SkipObjectResolution)
	if err != nil {
		return false, nil // not even Go
	}
	folder := filepath.Dir(m.File)
	files := []*ast.File{changed}
	for _, name := range c.files[folder] {
		path := filepath.Join(folder, name)
		if path == m.File {
			continue
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				d.Body = nil
			}
		}
		files = append(files, f)
	}
	ok := true
	config := types.Config{
		Importer: c.importer,
		Error: func(err error) {
			if e, is := errors.AsType[types.Error](err); is && set.Position(e.Pos).Filename == m.File {
				ok = false
			}
		},
	}
	_, _ = config.Check(module+folder, set, files, nil) // what matters went to Error
	return ok, nil
}
