package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// module is the path before every package of the repository's root module.
const module = "joiner/"

// testPackage is one package with tests, and what its tests run when nothing is changed.
type testPackage struct {
	Path    string           // from the repository's root, such as pkg/scheduling/binpack
	Took    time.Duration    // how long its tests take
	Covered map[string][]int // by file: the lines that its tests run, as first and last of each block, in turn
}

// runs says whether the tests of the package run a line of a file.
func (p testPackage) runs(file string, line int) bool {
	blocks := p.Covered[file]
	for i := 0; i+1 < len(blocks); i += 2 {
		if blocks[i] <= line && line <= blocks[i+1] {
			return true
		}
	}
	return false
}

// testsOf returns the packages whose tests run the mutant's line: its own package first, then the quickest.
func testsOf(m mutant, all []testPackage) []testPackage {
	own := filepath.Dir(m.File)
	var of []testPackage
	for _, p := range all {
		if p.runs(m.File, m.Line) {
			of = append(of, p)
		}
	}
	rank := func(p testPackage) int {
		if p.Path == own {
			return 0
		}
		return 1
	}
	slices.SortFunc(of, func(a, b testPackage) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Took, b.Took), cmp.Compare(a.Path, b.Path))
	})
	return of
}

// measure runs the tests of every package that depends on one of the areas, unchanged, and returns what lines each
// runs. The answer is kept in the file, since it takes minutes; another commit measures anew.
func measure(ctx context.Context, areas []string, kept string) ([]testPackage, error) {
	if data, err := os.ReadFile(kept); err == nil {
		var all []testPackage
		return all, json.Unmarshal(data, &all)
	}
	packages, err := dependents(ctx, areas)
	if err != nil {
		return nil, err
	}
	var all []testPackage
	for i, p := range packages {
		fmt.Printf("coverage %d/%d %s\n", i+1, len(packages), p)
		one, err := measureOne(ctx, p, areas)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	data, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return all, os.WriteFile(kept, data, 0o644)
}

// dependents returns the packages with tests that depend on one of the areas, the areas among them.
func dependents(ctx context.Context, areas []string) ([]string, error) {
	format := `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{join .Deps " "}} {{join .TestImports " "}} {{join .XTestImports " "}}{{end}}`
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

// measureOne runs the tests of one package with coverage of the areas.
func measureOne(ctx context.Context, path string, areas []string) (testPackage, error) {
	profile, err := os.CreateTemp("", "mutants-*.cover")
	if err != nil {
		return testPackage{}, err
	}
	defer os.RemoveAll(profile.Name())
	defer profile.Close()
	cover := module + strings.Join(areas, ","+module)
	start := time.Now()
	c := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-coverpkg", cover, "-coverprofile",
		profile.Name(), "./"+path)
	if out, err := c.CombinedOutput(); err != nil {
		return testPackage{}, fmt.Errorf("tests of %s, with nothing changed: %w\n%s", path, err, out)
	}
	p := testPackage{Path: path, Took: time.Since(start).Round(time.Second), Covered: map[string][]int{}}
	lines := bufio.NewScanner(profile)
	for lines.Scan() {
		if file, first, last, ok := coveredBlock(lines.Text()); ok {
			p.Covered[file] = append(p.Covered[file], first, last)
		}
	}
	return p, lines.Err()
}

// coveredBlock reads one line of a coverage profile, such as
// joiner/pkg/scheduling/binpack/place_pods.go:12.34,15.2 3 1; ok is false for a block that no test runs and for the
// line before the first.
func coveredBlock(text string) (file string, first, last int, ok bool) {
	place, counts, found := strings.Cut(text, " ")
	name, span, named := strings.Cut(place, ":")
	if !found || !named || strings.HasSuffix(counts, " 0") || !strings.HasPrefix(name, module) {
		return "", 0, 0, false
	}
	from, to, _ := strings.Cut(span, ",")
	first, errFirst := strconv.Atoi(strings.Split(from, ".")[0])
	last, errLast := strconv.Atoi(strings.Split(to, ".")[0])
	return strings.TrimPrefix(name, module), first, last, errFirst == nil && errLast == nil
}
