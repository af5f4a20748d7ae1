package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// module is the path before every package of the repository's root module.
const module = "joiner.sh/"

// test is one test of a package.
type test struct {
	Package string           // from the repository's root, such as pkg/scheduling/binpack
	Name    string           // such as TestScenarios
	Took    time.Duration    // how long it takes when nothing is changed
	Covered map[string][]int // by file: the lines that it runs, as first and last of each block, in turn
	Version string           // of the package's own files, its testdata among them
}

func (t test) id() string { return t.Package + "." + t.Name }

// versioned is the id of the test as it is now: what it did not notice it may notice once it is another.
func (t test) versioned() string { return t.id() + "@" + t.Version }

// runs says whether the test runs a line of a file.
func (t test) runs(file string, line int) bool {
	blocks := t.Covered[file]
	for i := 0; i+1 < len(blocks); i += 2 {
		if blocks[i] <= line && line <= blocks[i+1] {
			return true
		}
	}
	return false
}

// batch is tests of one package that run in one process.
type batch struct {
	path, version string
	names         []string
	took          time.Duration
}

// versioned are the ids of the tests as they are now.
func (b batch) versioned() (ids []string) {
	for _, name := range b.names {
		ids = append(ids, test{Package: b.path, Name: name, Version: b.version}.versioned())
	}
	return ids
}

// without leaves out tests by their versioned ids.
func (b batch) without(passed []string) batch {
	ids := b.versioned()
	var left []string
	for i, name := range b.names {
		if !slices.Contains(passed, ids[i]) {
			left = append(left, name)
		}
	}
	b.names = left
	return b
}

// quick bounds what a test may take, beyond the start of its process, that runs in one process with others.
const quick = time.Second

// batches returns the tests that run a mutant's line, those of its own package that take seconds first, then by
// what they take for each mutant that they noticed before. Slow tests have batches of their own.
func batches(m mutant, all []test, noticed map[string]int) []batch {
	own := filepath.Dir(m.File)
	var of []batch
	start := map[string]time.Duration{} // by package: what its quickest test takes, and so each process at least
	for _, t := range all {
		if t.runs(m.File, m.statement) {
			start[t.Package] = min(t.Took, cmp.Or(start[t.Package], t.Took))
		}
	}
	together := map[string]int{} // by package: the batch of its quick tests
	for _, t := range all {
		if !t.runs(m.File, m.statement) {
			continue
		}
		beyond := t.Took - start[t.Package]
		i, ok := together[t.Package]
		if !ok || beyond >= quick {
			i = len(of)
			of = append(of, batch{path: t.Package, version: t.Version, took: start[t.Package]})
		}
		if beyond < quick {
			together[t.Package] = i
		}
		of[i].names = append(of[i].names, t.Name)
		of[i].took += beyond
	}
	cost := func(b batch) time.Duration {
		mutants := 1
		for _, name := range b.names {
			mutants += noticed[test{Package: b.path, Name: name}.id()]
		}
		return b.took / time.Duration(mutants)
	}
	rank := func(b batch) int {
		if b.path == own && b.took < 10*quick {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(of, func(a, b batch) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(cost(a), cost(b)), cmp.Compare(a.path, b.path))
	})
	return of
}

// dependents returns the packages with tests that depend on one of the areas, the areas among them.
func dependents(ctx context.Context, areas []string) ([]string, error) {
	format := `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{join .Deps " "}} ` +
		`{{join .TestImports " "}} {{join .XTestImports " "}}{{end}}`
	out, err := exec.CommandContext(ctx, "go", "list", "-f", format, "./pkg/...", "./functions/...",
		"./infra/...").Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if slices.ContainsFunc(areas, func(a string) bool { return slices.Contains(words, module+a) }) {
			found = append(found, strings.TrimPrefix(words[0], module))
		}
	}
	slices.Sort(found)
	return found, nil
}

// wholePackages returns the tests of each package as one that runs every line of it.
func wholePackages(ctx context.Context, b *builder, packages []string) ([]test, error) {
	var all []test
	for i, path := range packages {
		version, err := hashFiles([]string{path}, anyFile)
		if err != nil {
			return nil, err
		}
		fmt.Printf("tests %d/%d %s\n", i+1, len(packages), path)
		binary, err := b.binary(ctx, path)
		if err != nil {
			return nil, err
		}
		start := time.Now()
		v, err := runTests(ctx, binary, batch{path: path, names: []string{".*"}}, 0, 10*time.Minute)
		if err != nil {
			return nil, err
		}
		if !v.passed {
			return nil, fmt.Errorf("tests of %s fail with nothing changed:\n%s", path, v.out)
		}
		t := test{Package: path, Name: ".*", Took: time.Since(start), Covered: map[string][]int{}, Version: version}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			t.Covered[f] = []int{1, math.MaxInt}
		}
		all = append(all, t)
	}
	return all, nil
}
