package plancheck

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// notShared lists the packages, below pkg, whose code the checker may not use.
func notShared() []string {
	return []string{"model/requirements", "scheduling/binpack", "scheduling/lowerbound", "model/topology", "model/overlays",
		"model/buffers", "providers/kube", "cli"}
}

// A judge that asks the packer's code what is right finds nothing wrong with it.
func TestSharesNoCodeWithThePacker(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		looked++
		for _, i := range f.Imports {
			for _, not := range notShared() {
				if i.Path.Value == `"joiner.sh/pkg/`+not+`"` {
					t.Errorf("%s imports %s", name, i.Path.Value)
				}
			}
		}
	}
	for _, room := range notShared() {
		if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(room))); err != nil {
			t.Errorf("the list names a package that is not there: %v", err)
		}
	}
	if looked < 8 {
		t.Errorf("looked at %d files only", looked)
	}
}
