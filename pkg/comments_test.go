package pkg_test

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// cutComment finds what is left of a sentence from which something was cut: "for one claim (." or "in this order .".
var cutComment = regexp.MustCompile(`//.*[ (]\.( [A-Z]|$)`)

// TestCommentsAreWhole reads the comments of all Go files.
func TestCommentsAreWhole(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && name != ".." || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir(), !strings.HasSuffix(name, ".go"), filepath.Base(name) == "comments_test.go":
			return nil
		}
		files++
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		for lines, i := bufio.NewScanner(f), 1; lines.Scan(); i++ {
			if cutComment.MatchString(lines.Text()) {
				t.Errorf("%s:%d: a sentence ends in a space or bracket: %s", name, i, strings.TrimSpace(lines.Text()))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 500 {
		t.Errorf("only %d Go files were found", files)
	}
}

func TestCutCommentsAreFound(t *testing.T) {
	for line, want := range map[string]bool{
		"// for one claim (.":                  true,
		"\t// in this order . Everything else": true,
		"// . It refuses to know":              true,
		"// for one claim.":                    false,
		"// ends with ...":                     false,
		"// below ./pkg and . or ..":           false,
		"// of f(). The next":                  false,
	} {
		if got := cutComment.MatchString(line); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}
