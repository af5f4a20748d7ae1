package plancheck

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

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
			for _, not := range []string{"require", "pack", "cover", "topology", "overlay", "buffer", "kube", "cli"} {
				if i.Path.Value == `"joiner/pkg/`+not+`"` {
					t.Errorf("%s imports %s", name, i.Path.Value)
				}
			}
		}
	}
	if looked < 8 {
		t.Errorf("looked at %d files only", looked)
	}
}
