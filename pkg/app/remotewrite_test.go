package app

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheVersionTellsBuildsApart: it is that of the program, and something else than a program has none.
func TestTheVersionTellsBuildsApart(t *testing.T) {
	test := programID("/proc/self/exe")
	if test == "devel" || strings.Contains(test, "/") {
		t.Errorf("this program's ID is %q", test)
	}
	if _, err := base64.RawURLEncoding.DecodeString(test); err != nil {
		t.Errorf("this program's ID is %q: %v", test, err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{text, filepath.Join(t.TempDir(), "none")} {
		if got := programID(path); got != "devel" {
			t.Errorf("ID %q of %s", got, path)
		}
	}
	if got := buildLabels(); got["version"] == "" || got["goversion"] == "" || got["goarch"] == "" {
		t.Errorf("labels %v", got)
	}
}
