package pkg_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every fuzz target runs in make test-all, for which the Makefile lists them.
func TestEveryFuzzTargetRuns(t *testing.T) {
	list, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	target, found := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`), 0
	for _, root := range []string{"../pkg", "../events", "../infra"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, m := range target.FindAllSubmatch(source, -1) {
				found++
				if want := fmt.Sprintf("'%s %s'", strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../"), m[1]); !strings.Contains(string(list), want) {
					t.Errorf("the Makefile does not list %s among the fuzz targets of all-fuzz", want)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 20 {
		t.Errorf("%d fuzz targets were found", found)
	}
}
