package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// measure runs every test of the packages, unchanged, and returns what lines of the areas each runs. The answers are
// kept in the folder, since they take minutes. A package is measured anew when its own files or the areas' sources
// change, but for its slow tests when only tests have changed: at worst a mutant is not tried with a test that would
// notice it.
func measure(ctx context.Context, areas, packages []string, o options) ([]test, error) {
	sources, err := hashFiles(areas, func(name string) bool {
		return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
	})
	if err != nil {
		return nil, err
	}
	b := newBuilder(filepath.Join(o.folder, "covered"), o.short, "-cover", "-covermode=set", "-coverpkg",
		module+strings.Join(areas, ","+module))
	var all []test
	for i, path := range packages {
		own, err := hashFiles([]string{path}, anyFile)
		if err != nil {
			return nil, err
		}
		prefix := filepath.Join(o.folder, fmt.Sprintf("coverage-%s-%s-", strings.ReplaceAll(path, "/", "_"), sources))
		kept := prefix + own + ".json"
		of, err := readTests(kept)
		if os.IsNotExist(err) {
			fmt.Printf("coverage %d/%d %s\n", i+1, len(packages), path)
			of, err = measureAnew(ctx, b, path, prefix, kept)
		}
		if err != nil {
			return nil, err
		}
		for _, t := range of {
			t.Version = own
			all = append(all, t)
		}
	}
	return all, nil
}

// readTests returns the tests that an earlier run has written to a file.
func readTests(path string) (of []test, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &of); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return of, nil
}

// measureAnew measures a package and keeps the answer. What a run measures that is ended before is kept in a file
// beside, and not measured again.
func measureAnew(ctx context.Context, b *builder, path, prefix, kept string) ([]test, error) {
	known, err := readSlowTests(prefix)
	if err != nil {
		return nil, err
	}
	partial := strings.TrimSuffix(kept, ".json") + ".partial"
	before, err := readTests(partial)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for _, t := range before {
		known[t.Name] = t
	}
	of, err := measurePackage(ctx, b, path, known)
	if err != nil {
		if len(of) > 0 {
			err = errors.Join(err, writeJSON(partial, of))
		}
		return nil, err
	}
	return of, errors.Join(writeJSON(kept, of), os.RemoveAll(partial))
}

// readSlowTests returns the tests of files with a prefix that take long, by name.
func readSlowTests(prefix string) (map[string]test, error) {
	files, err := filepath.Glob(prefix + "*.json")
	if err != nil {
		return nil, err
	}
	slow := map[string]test{}
	for _, path := range files {
		of, err := readTests(path)
		if err != nil {
			return nil, err
		}
		for _, t := range of {
			if t.Took >= 5*time.Second {
				slow[t.Name] = t
			}
		}
	}
	return slow, nil
}

// hashFiles returns a hash of the files of packages, their testdata among them, not of packages below.
func hashFiles(folders []string, wanted func(name string) bool) (string, error) {
	hash := sha256.New()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				if path != folder && !strings.Contains(path, "testdata") {
					return filepath.SkipDir
				}
				return nil
			}
			if !wanted(d.Name()) {
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(hash, "%s %d\n%s", path, len(data), data)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:4]), nil
}

func anyFile(string) bool { return true }

func writeJSON(path string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// measurePackage runs each test of one package alone, with coverage, but those that are known. With an error it returns
// what it knows by then.
func measurePackage(ctx context.Context, b *builder, path string, known map[string]test) ([]test, error) {
	binary, err := b.binary(ctx, path)
	if err != nil {
		return nil, err
	}
	list := exec.CommandContext(ctx, binary, "-test.list", ".")
	list.Dir = path
	names, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list tests of %s: %w", path, err)
	}
	var all []test
	for _, name := range strings.Fields(string(names)) {
		if strings.HasPrefix(name, "Benchmark") {
			continue
		}
		if t, ok := known[name]; ok {
			all = append(all, t)
			continue
		}
		t, err := measureTest(ctx, binary, test{Package: path, Name: name})
		if err != nil {
			return all, err
		}
		all = append(all, t)
	}
	return all, nil
}

// measureTest fills in what a test runs and how long it takes.
func measureTest(ctx context.Context, binary string, t test) (test, error) {
	profile, err := os.CreateTemp("", "mutants-*.cover")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(profile.Name())
	defer profile.Close()
	start := time.Now()
	c := exec.CommandContext(ctx, binary, "-test.run", exactly([]string{t.Name}), "-test.coverprofile", profile.Name())
	c.Dir = t.Package
	if out, err := c.CombinedOutput(); err != nil {
		return t, fmt.Errorf("%s, with nothing changed: %w\n%s", t.id(), err, out)
	}
	t.Took = time.Since(start).Round(time.Millisecond)
	t.Covered = map[string][]int{}
	lines := bufio.NewScanner(profile)
	for lines.Scan() {
		if file, first, last, ok := coveredBlock(lines.Text()); ok {
			t.Covered[file] = append(t.Covered[file], first, last)
		}
	}
	return t, lines.Err()
}

// exactly returns the pattern for -test.run that selects tests by their whole names.
func exactly(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

// coveredBlock reads one line of a coverage profile, such as
// joiner.sh/pkg/scheduling/binpack/place_pods.go:12.34,15.2 3 1; ok is false for a block that no test runs and for the
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
