package app

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// callGraph is who calls whom in the controllers, by full names; an edge to a port is such as "port
// Claims.DeleteClaim".
type callGraph struct {
	edges map[string][]string
	types []types.Type // of the controllers, which may stand behind an interface
}

// controllerCalls reads the calls of the controllers from their source, without tests. What stands behind an interface
// of the controllers may be any of their types that has its methods.
func controllerCalls(t *testing.T) callGraph {
	t.Helper()
	exports, sources := map[string]string{}, []listedPackage{}
	for _, p := range listPackages(t, "joiner.sh/pkg/controllers/...") {
		exports[p.ImportPath] = p.Export
		if ours(p.ImportPath) {
			sources = append(sources, p)
		}
	}
	g := callGraph{edges: map[string][]string{}}
	fset, checked := token.NewFileSet(), map[string]*types.Package{}
	compiled := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	var files []*ast.File
	for _, p := range sources {
		var own []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			own = append(own, f)
		}
		config := types.Config{Importer: importerFunc(func(path string) (*types.Package, error) {
			if done := checked[path]; done != nil {
				return done, nil
			}
			return compiled.Import(path)
		})}
		pkg, err := config.Check(p.ImportPath, fset, own, info)
		if err != nil {
			t.Fatal(err)
		}
		checked[p.ImportPath] = pkg
		for _, name := range pkg.Scope().Names() {
			if named, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok && !types.IsInterface(named.Type()) {
				g.types = append(g.types, types.NewPointer(named.Type()))
			}
		}
		files = append(files, own...)
	}
	for _, f := range files {
		g.addFile(f, info)
	}
	return g
}

// importerFunc finds the packages that others import.
type importerFunc func(path string) (*types.Package, error)

// Import finds one package.
func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }

// ours reports whether the package is one of the controllers.
func ours(path string) bool {
	return path == "joiner.sh/pkg/controllers" || strings.HasPrefix(path, "joiner.sh/pkg/controllers/")
}

func (g callGraph) addFile(f *ast.File, info *types.Info) {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		caller := info.Defs[fn.Name].(*types.Func).FullName()
		ast.Inspect(fn, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			called, ok := info.Uses[id].(*types.Func)
			if !ok || called.Pkg() == nil || !ours(called.Pkg().Path()) {
				return true
			}
			called = called.Origin()
			g.edges[caller] = append(g.edges[caller], called.FullName())
			if recv := called.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) {
				g.addInterface(called, recv.Type())
			}
			return true
		})
	}
}

// addInterface adds what may stand behind a method of an interface: the port itself, and methods of our own types.
func (g callGraph) addInterface(method *types.Func, of types.Type) {
	from := method.FullName()
	if g.edges[from] != nil {
		return
	}
	named, ok := of.(*types.Named)
	if !ok {
		return
	}
	g.edges[from] = []string{"port " + named.Obj().Name() + "." + method.Name()}
	for _, t := range g.types {
		if types.Implements(t, named.Underlying().(*types.Interface)) {
			if m, _, _ := types.LookupFieldOrMethod(t, true, method.Pkg(), method.Name()); m != nil {
				g.edges[from] = append(g.edges[from], m.(*types.Func).FullName())
			}
		}
	}
}

// portsFrom are the port methods that a controller's method, such as "provision.Run", may call, sorted.
func (g callGraph) portsFrom(t *testing.T, root string) []string {
	t.Helper()
	var queue []string
	for name := range g.edges {
		pkg, method, _ := strings.Cut(root, ".")
		if strings.HasSuffix(name, "/"+pkg+".Controller)."+method) {
			queue = append(queue, name)
		}
	}
	if len(queue) != 1 {
		t.Fatalf("%d methods are %s: %v", len(queue), root, queue)
	}
	seen, ports := map[string]bool{}, []string{}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		if port, ok := strings.CutPrefix(name, "port "); ok {
			ports = append(ports, port)
		}
		queue = append(queue, g.edges[name]...)
	}
	slices.Sort(ports)
	return ports
}

type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// listPackages are the packages and what they import, dependencies first.
func listPackages(t *testing.T, pattern string) (out []listedPackage) {
	t.Helper()
	text, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", pattern).Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
}
