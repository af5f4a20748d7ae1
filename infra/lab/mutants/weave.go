package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// selector names the environment variable that says which mutant a test binary is to run.
const selector = "JOINER_MUTANT"

// selected is added to each package that has mutants. 0 is the program as it is.
const selected = `package %s

import (
	"os"
	"strconv"
)

var activeMutant, _ = strconv.Atoi(os.Getenv(%q))
`

// weave returns the source of a file with all the mutants of it, by number. Each mutant is a copy of its function's
// body that runs when its number is selected, so that one build serves all. Mutants outside of functions cannot be
// woven.
func weave(file string, source []byte, mutants map[int]mutant) ([]byte, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	at := func(p token.Pos) int { return set.Position(p).Offset }
	var woven []byte
	done := 0
	for _, d := range tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		from, to := at(f.Body.Lbrace)+1, at(f.Body.Rbrace)
		woven = append(woven, source[done:from]...)
		for _, n := range numbersIn(mutants, from, to) {
			woven = fmt.Appendf(woven, "\nif activeMutant == %d {", n)
			woven = append(woven, copyOfBody(f.Body, at, source, mutants[n], n)...)
			if f.Type.Results == nil {
				woven = append(woven, "\nreturn\n"...)
			}
			woven = append(woven, "}\n"...)
		}
		done = from
	}
	return append(woven, source[done:]...), nil
}

// numbersIn returns the mutants between two offsets, in order.
func numbersIn(mutants map[int]mutant, from, to int) []int {
	var in []int
	for n, m := range mutants {
		if from <= m.offset && m.offset < to {
			in = append(in, n)
		}
	}
	slices.Sort(in)
	return in
}

// edit replaces what stands in a source between two offsets.
type edit struct {
	from, to int
	text     string
}

// copyOfBody returns a function's body with the mutant in it. Its labels get the mutant's number, since a function
// has each label once.
func copyOfBody(body *ast.BlockStmt, at func(token.Pos) int, source []byte, m mutant, n int) []byte {
	changeTo := m.offset + len(m.From)
	edits := []edit{{m.offset, changeTo, m.To}}
	rename := func(label *ast.Ident) {
		if label == nil || m.offset <= at(label.Pos()) && at(label.End()) <= changeTo {
			return
		}
		edits = append(edits, edit{at(label.Pos()), at(label.End()), fmt.Sprintf("%s_%d", label.Name, n)})
	}
	ast.Inspect(body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.LabeledStmt:
			rename(node.Label)
		case *ast.BranchStmt:
			rename(node.Label)
		}
		return true
	})
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out []byte
	done := at(body.Lbrace) + 1
	for _, e := range edits {
		out = append(append(out, source[done:e.from]...), e.text...)
		done = e.to
	}
	return append(out, source[done:at(body.Rbrace)]...)
}

// writeWoven writes every file that has mutants, woven, and the overlay that has the Go command take them instead of
// the files in the work tree. A mutant's number is its place in the sample, from 1.
func writeWoven(folder string, sample []mutant) (overlay string, err error) {
	byFile := map[string]map[int]mutant{}
	for i, m := range sample {
		if !m.woven() {
			continue
		}
		if byFile[m.File] == nil {
			byFile[m.File] = map[int]mutant{}
		}
		byFile[m.File][i+1] = m
	}
	contents := map[string][]byte{}
	for file, mutants := range byFile {
		source, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if contents[file], err = weave(file, source, mutants); err != nil {
			return "", err
		}
		name, err := packageName(file)
		if err != nil {
			return "", err
		}
		contents[filepath.Join(filepath.Dir(file), "active_mutant.go")] = fmt.Appendf(nil, selected, name, selector)
	}
	return writeOverlay(folder, contents)
}

// packageName reads the package clause of a file.
func packageName(file string) (string, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
	if err != nil {
		return "", err
	}
	return tree.Name.Name, nil
}

// writeOverlay writes files that stand for others, by the others' paths, and the list of them for the Go command.
func writeOverlay(folder string, contents map[string][]byte) (overlay string, err error) {
	if folder, err = filepath.Abs(folder); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, content := range contents {
		path, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		replace[path] = filepath.Join(folder, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(replace[path], content, 0o644); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o644)
}
