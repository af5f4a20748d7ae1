package disruption

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// A reason that is not declared would have no event, and nobody would be told.
func TestReasonsAreDeclared(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if literal := regexp.MustCompile("refusal{\"[^}]*").Find(text); literal != nil {
			t.Errorf("%s: %s names no constant", name, literal)
		}
	}
}
