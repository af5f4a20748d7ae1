package pkg_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMapNamesWhatIsThere follows the map: each file that README.md names exists and has the function that is named
// with it, and each key with which Joiner's functions hand something over stands in the table of hand-overs.
func TestMapNamesWhatIsThere(t *testing.T) {
	page := readPage(t, "README.md")
	spans := regexp.MustCompile("`([\\w./-]+\\.(?:go|tsv))(?::(\\w+))?`").FindAllStringSubmatch(page, -1)
	if len(spans) < 30 {
		t.Errorf("README.md names %d files: the expression does not find them", len(spans))
	}
	for _, s := range spans {
		text, err := findFile(s[1])
		switch {
		case err != nil:
			t.Errorf("README.md names %s: %v", s[1], err)
		case s[2] != "" && !regexp.MustCompile(`(?m)^func (\(\w+ \*?\w+\) )?`+s[2]+`[\[(]`).MatchString(text):
			t.Errorf("README.md names %s in %s, which does not declare it", s[2], s[1])
		}
	}
	for _, key := range handOverKeys(readPage(t, "api/v1/annotations.go")) {
		if !strings.Contains(page, "`"+key+"`") {
			t.Errorf("README.md does not say who writes, reads and removes %s", key)
		}
	}
}

// handOverKeys returns the annotation keys that stand on NodeClaims and that Joiner writes.
func handOverKeys(source string) (keys []string) {
	_, rest, _ := strings.Cut(source, "// On NodeClaims, written by Joiner.")
	rest, _, _ = strings.Cut(rest, "// On EC2NodeClasses")
	for _, m := range regexp.MustCompile(`= "(joiner\.sh/[\w-]+)"`).FindAllStringSubmatch(rest, -1) {
		keys = append(keys, m[1])
	}
	return keys
}

// findFile reads a file that is named from pkg, from the top of the repository, or, without a folder, by any file of
// that name below pkg.
func findFile(name string) (string, error) {
	for _, path := range []string{name, filepath.Join("..", name)} {
		if text, err := os.ReadFile(path); err == nil {
			return string(text), nil
		}
	}
	for _, glob := range []string{"*/" + name, "*/*/" + name} {
		if found, _ := filepath.Glob(glob); len(found) > 0 {
			text, err := os.ReadFile(found[0])
			return string(text), err
		}
	}
	return "", os.ErrNotExist
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestHandOverKeysAreFound shows that the keys are read from the source at all.
func TestHandOverKeysAreFound(t *testing.T) {
	if keys := handOverKeys(readPage(t, "api/v1/annotations.go")); len(keys) < 8 {
		t.Errorf("found %v", keys)
	}
}
