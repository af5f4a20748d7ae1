// Package pkg_test holds the rules about who may import what, which the shape of STYLE.md rests on.
package pkg_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layer is where a package stands in the shape; a package may import its own kind and what stands right of and below it.
type layer string

const (
	noun     layer = "noun"     // plain values; pure
	decision layer = "decision" // a plan from a snapshot; pure
	adapter  layer = "adapter"  // one outside system each
	shell    layer = "shell"    // observes, decides, applies, through ports of its own
	wiring   layer = "wiring"   // puts adapters behind the ports; reads the environment
	support  layer = "support"  // for tests and the local runner
)

// layers has every folder directly below pkg. A new package is entered here: that is the moment to ask what it is.
func layers() map[string]layer {
	return map[string]layer{
		"api": noun, "awscode": noun, "catalog": noun, "cluster": noun, "install": noun, "metric": noun, "plan": noun, "require": noun, "resource": noun, "setting": noun,
		"manifest": noun, "workload": noun,
		"bootstrap": decision, "convert": decision, "doctor": decision, "budget": decision, "buffer": decision, "disrupt": decision, "static": decision, "drain": decision, "drift": decision, "explain": decision, "interrupt": decision, "isolate": decision,
		"hold": decision, "launch": decision, "migrate": decision, "status": decision, "tick": decision, "cover": decision, "lifecycle": decision, "nodeclass": decision, "overlay": decision, "pack": decision, "pass": decision, "topology": decision,
		"archive": adapter, "discover": adapter, "fleet": adapter, "kube": adapter, "ledger": adapter, "wake": adapter,
		"control": shell, "gate": shell, "push": shell, "setup": shell,
		"app": wiring, "cli": wiring,
		"checker": support, "controltest": support, "readme": support, "scenario": support, "sim": support,
	}
}

// mayImport says which of our own packages a layer may know. Adapters know no other adapter: see crossing.
func mayImport() map[layer][]layer {
	return map[layer][]layer{
		noun:     {noun},
		decision: {noun, decision},
		adapter:  {noun, decision, adapter},
		shell:    {noun, decision, shell},
		wiring:   {noun, decision, adapter, shell, wiring},
		support:  {noun, decision, shell, support},
	}
}

// listed is what `go list` says about a package, without its tests.
type listed struct {
	ImportPath, Name, Dir string
	GoFiles               []string
	Imports, Deps         []string
}

func TestImportsPointRightAndDown(t *testing.T) {
	for _, p := range packages(t) {
		for _, problem := range crossing(p) {
			t.Error(problem)
		}
	}
}

func TestNounsAndDecisionsArePure(t *testing.T) {
	for _, p := range packages(t) {
		if l := layers()[folder(p.ImportPath)]; l != noun && l != decision {
			continue
		}
		for _, problem := range heavy(p) {
			t.Error(problem)
		}
		fset := token.NewFileSet()
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range impure(fset, file) {
				t.Error(problem)
			}
		}
	}
}

func TestSupportImportsNoSDK(t *testing.T) {
	for _, p := range packages(t) {
		if layers()[folder(p.ImportPath)] == support {
			for _, problem := range heavy(p) {
				t.Error(problem)
			}
		}
	}
}

// TestTheRulesCanFail shows each rule a violation of it.
func TestTheRulesCanFail(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "bad.go", `package bad
import (
	"context"
	clock "time"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"osmosis"
)
func f() { _ = clock.Now(); clock.AfterFunc(1, f); _ = clock.Second; _ = clock.Time{}.Add(1) }
func g() { var time t; time.Now() }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`bad.go:3:2: a pure package imports context`,
		`bad.go:5:2: a pure package imports log/slog`,
		`bad.go:6:2: a pure package imports math/rand/v2`,
		`bad.go:7:2: a pure package imports net/http`,
		`bad.go:10:16: a pure package calls time.Now; time is the Now of the snapshot`,
		`bad.go:10:29: a pure package calls time.AfterFunc; time is the Now of the snapshot`,
	}
	if d := cmp.Diff(want, impure(fset, file)); d != "" {
		t.Errorf("impure (-want +got):\n%s", d)
	}
	for _, c := range []struct {
		from, imports string
		want          []string
	}{
		{"joiner/pkg/pack", "joiner/pkg/plan", nil},
		{"joiner/pkg/app", "joiner/pkg/kube", nil},
		{"joiner/pkg/fleet", "joiner/pkg/fleet/wire", nil},
		{"joiner/pkg/control", "joiner/pkg/kube", []string{"joiner/pkg/control (shell) imports joiner/pkg/kube (adapter)"}},
		{"joiner/pkg/plan", "joiner/pkg/pack", []string{"joiner/pkg/plan (noun) imports joiner/pkg/pack (decision)"}},
		{"joiner/pkg/fleet", "joiner/pkg/kube", []string{"joiner/pkg/fleet imports joiner/pkg/kube: adapters do not know each other"}},
		{"joiner/pkg/kube", "joiner/functions/provision", []string{"joiner/pkg/kube imports joiner/functions/provision: pkg knows nothing outside pkg but events"}},
		{"joiner/pkg/novel", "fmt", []string{"joiner/pkg/novel: which layer is it? enter it in layers() of pkg/purity_test.go"}},
	} {
		got := crossing(listed{ImportPath: c.from, Imports: []string{c.imports}})
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s imports %s (-want +got):\n%s", c.from, c.imports, d)
		}
	}
	got := heavy(listed{ImportPath: "joiner/pkg/plan", Deps: []string{"fmt", "k8s.io/api/core/v1", "k8s.io/client-go/rest", "github.com/aws/smithy-go"}})
	wantHeavy := []string{
		"joiner/pkg/plan reaches k8s.io/client-go/rest, even if indirectly",
		"joiner/pkg/plan reaches github.com/aws/smithy-go, even if indirectly",
	}
	if d := cmp.Diff(wantHeavy, got); d != "" {
		t.Errorf("heavy (-want +got):\n%s", d)
	}
}

// crossing are the imports of a package that point the wrong way.
func crossing(p listed) []string {
	from := folder(p.ImportPath)
	own, known := layers()[from]
	if !known {
		return []string{p.ImportPath + ": which layer is it? enter it in layers() of pkg/purity_test.go"}
	}
	var problems []string
	for _, path := range p.Imports {
		to := folder(path)
		switch {
		case !strings.HasPrefix(path, "joiner/") || from == to:
		case strings.HasPrefix(path, "joiner/events") && (own == wiring || own == shell):
		case to == "":
			problems = append(problems, fmt.Sprintf("%s imports %s: pkg knows nothing outside pkg but events", p.ImportPath, path))
		case own == adapter && layers()[to] == adapter:
			problems = append(problems, fmt.Sprintf("%s imports %s: adapters do not know each other", p.ImportPath, path))
		case !slices.Contains(mayImport()[own], layers()[to]):
			problems = append(problems, fmt.Sprintf("%s (%s) imports %s (%s)", p.ImportPath, own, path, layers()[to]))
		}
	}
	return problems
}

// heavy are the clients of outside systems that a package drags in, directly or not.
func heavy(p listed) []string {
	var problems []string
	for _, dep := range p.Deps {
		if strings.HasPrefix(dep, "github.com/aws/") || strings.HasPrefix(dep, "k8s.io/client-go/") {
			problems = append(problems, fmt.Sprintf("%s reaches %s, even if indirectly", p.ImportPath, dep))
		}
	}
	return problems
}

// impure are the imports and calls of one file by which it could see or change anything but its arguments.
func impure(fset *token.FileSet, file *ast.File) []string {
	var problems []string
	clock := ""
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		if path == "time" {
			clock = "time"
			if spec.Name != nil {
				clock = spec.Name.Name
			}
		}
		for _, forbidden := range []string{"context", "os", "net", "log", "math/rand", "crypto/rand", "syscall"} {
			if path == forbidden || strings.HasPrefix(path, forbidden+"/") {
				problems = append(problems, fmt.Sprintf("%s: a pure package imports %s", fset.Position(spec.Pos()), path))
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || clock == "" {
			return true
		}
		name, ok := sel.X.(*ast.Ident)
		if ok && name.Name == clock && readsClock(sel.Sel.Name) {
			problems = append(problems, fmt.Sprintf("%s: a pure package calls time.%s; time is the Now of the snapshot", fset.Position(sel.Pos()), sel.Sel.Name))
		}
		return true
	})
	return problems
}

func readsClock(function string) bool {
	return slices.Contains([]string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTicker", "NewTimer"}, function)
}

// folder is the name directly below joiner/pkg, or "" for what is elsewhere.
func folder(importPath string) string {
	rest, ok := strings.CutPrefix(importPath, "joiner/pkg/")
	if !ok {
		return ""
	}
	first, _, _ := strings.Cut(rest, "/")
	return first
}

// packages are all packages below pkg, even if one does not compile: that is not for this test to say.
func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Dir,GoFiles,Imports,Deps", "./...").Output()
	if err != nil {
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %v\n%s", err, failed.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == "joiner/pkg" || p.Name == "main" {
			continue // this file; a generator, which is no part of any program
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("go list found no package below pkg")
	}
	return all
}
