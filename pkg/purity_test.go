// Package pkg_test holds the rules about who may import what.
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

// layer is where a package stands in the shape; a package may import its own kind and what stands right of and below
// it.
type layer string

const (
	model    layer = "model"    // plain values; pure
	decision layer = "decision" // a plan from a snapshot; pure
	provider layer = "provider" // one outside system each
	shell    layer = "shell"    // observes, decides, applies, through ports of its own
	wiring   layer = "wiring"   // puts providers behind the ports; reads the environment
	support  layer = "support"  // for tests and the local runner
)

// layers has every room below pkg; a package belongs to the room with the longest path that begins its own. A new room
// is entered here: that is the moment to ask what it is.
func layers() map[string]layer {
	return map[string]layer{
		"api": model, "install": model, "model": model, "settings": model, "workload": model,
		"decisionlog": model, "decisionlog/replay": decision, "disruption": decision, "nodeclaim": decision, "nodeclass": decision, "provisioning": decision, "rollout": decision, "whatif": decision,
		"scheduling": decision, "scheduling/podclass": decision, "scheduling/capacity": decision, "scheduling/podtopology": decision,
		"scheduling/cover": decision, "scheduling/packing": decision, "scheduling/lowerbound": decision, "scheduling/prices": decision, "scheduling/report": decision, "scheduling/search": decision,
		"scheduling/binpack": decision, "cli/accept": decision, "cli/bill": decision, "cli/convert": decision, "cli/doctor": decision, "cli/explain": decision, "cli/forget": decision, "cli/migrate": decision, "cli/release": decision,
		"cli/status": decision,
		"providers":  provider, "providers/archive": provider, "providers/discovery": provider, "providers/fleet": provider, "providers/invoke": provider,
		"providers/kube": provider, "providers/prometheus": provider, "providers/store": provider,
		"controllers": shell, "install/crdcheck": shell, "install/setup": shell,
		"app": wiring, "cli": wiring,
		"testing": support,
	}
}

// mayImport says which of our own packages a layer may know. Providers know no other provider: see crossing.
func mayImport() map[layer][]layer {
	return map[layer][]layer{
		model:    {model},
		decision: {model, decision},
		provider: {model, decision, provider},
		shell:    {model, decision, shell},
		wiring:   {model, decision, provider, shell, wiring},
		support:  {model, decision, shell, support},
	}
}

// deciders are the rooms that providers must not reach, even indirectly: a provider translates, and does not decide.
func deciders() []string {
	return []string{"rollout", "scheduling", "scheduling/podclass", "scheduling/capacity", "scheduling/podtopology",
		"scheduling/cover", "scheduling/packing", "scheduling/lowerbound", "scheduling/prices", "scheduling/report", "scheduling/search", "scheduling/binpack", "provisioning", "disruption", "decisionlog/replay"}
}

// floors are the deciding rooms from the lowest to the highest: each knows only rooms before it.
func floors() []string {
	return []string{"nodeclaim", "nodeclass", "rollout", "scheduling/podclass", "scheduling/capacity",
		"scheduling/podtopology", "scheduling", "scheduling/cover", "scheduling/packing", "scheduling/lowerbound", "scheduling/prices", "scheduling/report",
		"scheduling/search", "scheduling/binpack", "provisioning", "disruption", "decisionlog/replay", "whatif",
		"cli/status", "cli/explain", "cli/forget", "cli/migrate", "cli/convert", "cli/doctor", "cli/accept", "cli/release"}
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

func TestModelAndDecisionsArePure(t *testing.T) {
	for _, p := range packages(t) {
		if l := layers()[room(p.ImportPath)]; l != model && l != decision {
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
		if layers()[room(p.ImportPath)] == support {
			for _, problem := range heavy(p) {
				t.Error(problem)
			}
		}
	}
}

func TestProvidersDoNotReachDeciders(t *testing.T) {
	for _, p := range packages(t) {
		if layers()[room(p.ImportPath)] == provider {
			for _, problem := range deciding(p) {
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
func h() { _ = rand.New(rand.NewPCG(1, 2)); _ = rand.IntN(3) }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`bad.go:3:2: a pure package imports context`,
		`bad.go:5:2: a pure package imports log/slog`,
		`bad.go:7:2: a pure package imports net/http`,
		`bad.go:10:16: a pure package calls time.Now; time is the Now of the snapshot`,
		`bad.go:10:29: a pure package calls time.AfterFunc; time is the Now of the snapshot`,
		`bad.go:12:49: a pure package calls rand.IntN; draw from rand.New(rand.NewPCG(...))`,
	}
	if d := cmp.Diff(want, impure(fset, file)); d != "" {
		t.Errorf("impure (-want +got):\n%s", d)
	}
	for _, c := range []struct {
		from, imports string
		want          []string
	}{
		{"joiner.sh/pkg/scheduling/binpack", "joiner.sh/pkg/model/plan", nil},
		{"joiner.sh/pkg/app", "joiner.sh/pkg/providers/kube", nil},
		{"joiner.sh/pkg/providers/fleet", "joiner.sh/pkg/providers/fleet/wire", nil},
		{"joiner.sh/pkg/controllers", "joiner.sh/pkg/providers/kube", []string{"joiner.sh/pkg/controllers (shell) imports joiner.sh/pkg/providers/kube (provider)"}},
		{"joiner.sh/pkg/model/plan", "joiner.sh/pkg/scheduling/binpack", []string{"joiner.sh/pkg/model/plan (model) imports joiner.sh/pkg/scheduling/binpack (decision)"}},
		{"joiner.sh/pkg/providers/fleet", "joiner.sh/pkg/providers/kube", []string{"joiner.sh/pkg/providers/fleet imports joiner.sh/pkg/providers/kube: providers do not know each other"}},
		{"joiner.sh/pkg/providers/kube", "joiner.sh/functions/provision", []string{"joiner.sh/pkg/providers/kube imports joiner.sh/functions/provision: pkg knows nothing outside pkg but events"}},
		{"joiner.sh/pkg/disruption", "joiner.sh/pkg/scheduling/binpack", nil},
		{"joiner.sh/pkg/scheduling/binpack", "joiner.sh/pkg/disruption", []string{"joiner.sh/pkg/scheduling/binpack imports joiner.sh/pkg/disruption, which stands above it in floors()"}},
		{"joiner.sh/pkg/novel", "fmt", []string{"joiner.sh/pkg/novel: which layer is it? enter it in layers() of pkg/purity_test.go"}},
	} {
		got := crossing(listed{ImportPath: c.from, Imports: []string{c.imports}})
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s imports %s (-want +got):\n%s", c.from, c.imports, d)
		}
	}
	if d := cmp.Diff([]string{"joiner.sh/pkg/providers/kube reaches joiner.sh/pkg/scheduling/binpack: providers do not decide"},
		deciding(listed{ImportPath: "joiner.sh/pkg/providers/kube", Deps: []string{"fmt", "joiner.sh/pkg/model/plan", "joiner.sh/pkg/scheduling/binpack"}})); d != "" {
		t.Errorf("deciding (-want +got):\n%s", d)
	}
	got := heavy(listed{ImportPath: "joiner.sh/pkg/model/plan", Deps: []string{"fmt", "k8s.io/api/core/v1", "k8s.io/client-go/rest", "github.com/aws/smithy-go"}})
	wantHeavy := []string{
		"joiner.sh/pkg/model/plan reaches k8s.io/client-go/rest, even if indirectly",
		"joiner.sh/pkg/model/plan reaches github.com/aws/smithy-go, even if indirectly",
	}
	if d := cmp.Diff(wantHeavy, got); d != "" {
		t.Errorf("heavy (-want +got):\n%s", d)
	}
}

// crossing are the imports of a package that point the wrong way.
func crossing(p listed) []string {
	from := room(p.ImportPath)
	own, known := layers()[from]
	if !known {
		return []string{p.ImportPath + ": which layer is it? enter it in layers() of pkg/purity_test.go"}
	}
	var problems []string
	for _, path := range p.Imports {
		to := room(path)
		switch {
		case !strings.HasPrefix(path, "joiner.sh/") || from == to:
		case strings.HasPrefix(path, "joiner.sh/events") && (own == wiring || own == shell):
		case to == "":
			problems = append(problems, fmt.Sprintf("%s imports %s: pkg knows nothing outside pkg but events", p.ImportPath, path))
		case own == provider && layers()[to] == provider:
			problems = append(problems, fmt.Sprintf("%s imports %s: providers do not know each other", p.ImportPath, path))
		case own == decision && layers()[to] == decision &&
			slices.Index(floors(), to) >= slices.Index(floors(), from):
			problems = append(problems, fmt.Sprintf("%s imports %s, which stands above it in floors()", p.ImportPath, path))
		case !slices.Contains(mayImport()[own], layers()[to]):
			problems = append(problems, fmt.Sprintf("%s (%s) imports %s (%s)", p.ImportPath, own, path, layers()[to]))
		}
	}
	return problems
}

// deciding are the deciders that a package reaches, directly or not.
func deciding(p listed) []string {
	var problems []string
	for _, dep := range p.Deps {
		if slices.Contains(deciders(), room(dep)) {
			problems = append(problems, fmt.Sprintf("%s reaches %s: providers do not decide", p.ImportPath, dep))
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
	clock, chance := "", ""
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		if path == "time" {
			clock = "time"
			if spec.Name != nil {
				clock = spec.Name.Name
			}
		}
		if path == "math/rand/v2" { // numbers of a seed are always the same
			chance = "rand"
			if spec.Name != nil {
				chance = spec.Name.Name
			}
			continue
		}
		for _, forbidden := range []string{"context", "os", "net", "log", "math/rand", "crypto/rand", "syscall"} {
			if path == forbidden || strings.HasPrefix(path, forbidden+"/") {
				problems = append(problems, fmt.Sprintf("%s: a pure package imports %s", fset.Position(spec.Pos()), path))
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name, ok := sel.X.(*ast.Ident)
		if ok && name.Name == chance && !slices.Contains([]string{"New", "NewPCG", "Rand"}, sel.Sel.Name) {
			problems = append(problems, fmt.Sprintf("%s: a pure package calls rand.%s; draw from rand.New(rand.NewPCG(...))", fset.Position(sel.Pos()), sel.Sel.Name))
		}
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

// room is the room below joiner.sh/pkg that a package belongs to, its first folder where it is entered nowhere, or "" for
// what is elsewhere.
func room(importPath string) string {
	path, ok := strings.CutPrefix(importPath, "joiner.sh/pkg/")
	if !ok {
		return ""
	}
	first, _, _ := strings.Cut(path, "/")
	for path != "" {
		if _, known := layers()[path]; known {
			return path
		}
		path = path[:max(0, strings.LastIndex(path, "/"))]
	}
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
		if p.ImportPath == "joiner.sh/pkg" || p.Name == "main" {
			continue // this file; a generator, which is no part of any program
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("go list found no package below pkg")
	}
	return all
}
