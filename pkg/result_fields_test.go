package pkg_test

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// resultPackage reports whether the exported structs that functions of the folder return are results of decisions.
func resultPackage(folder string) bool {
	rooms := []string{"disruption", "nodeclaim", "nodeclass", "provisioning", "rollout", "scheduling", "whatif",
		"cli", "decisionlog/replay", "model/plan"}
	return slices.ContainsFunc(rooms, func(r string) bool {
		return folder == "pkg/"+r || strings.HasPrefix(folder, "pkg/"+r+"/")
	})
}

// resultTypes finds the exported structs that exported functions and methods return, and those in their fields.
type resultTypes struct {
	structs map[string]*ast.StructType // by folder.Name
	imports map[*ast.StructType]map[string]string
	found   map[string]bool
}

// follow marks the structs that a type of a file of the folder holds.
func (r *resultTypes) follow(folder string, imports map[string]string, x ast.Expr) {
	ast.Inspect(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType: // hands nothing over by itself
			return false
		case *ast.SelectorExpr:
			if p, ok := n.X.(*ast.Ident); ok {
				r.mark(imports[p.Name], n.Sel.Name)
			}
			return false
		case *ast.Ident:
			r.mark(folder, n.Name)
		}
		return true
	})
}

func (r *resultTypes) mark(folder, name string) {
	key := folder + "." + name
	s := r.structs[key]
	if s == nil || r.found[key] || !ast.IsExported(name) {
		return
	}
	r.found[key] = true
	for _, f := range s.Fields.List {
		if slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
			r.follow(folder, r.imports[s], f.Type)
		}
	}
}

func importsOf(f *ast.File) map[string]string {
	out := map[string]string{}
	for _, i := range f.Imports {
		p := strings.Trim(i.Path.Value, `"`)
		name := path.Base(p)
		if i.Name != nil {
			name = i.Name.Name
		}
		out[name] = strings.TrimPrefix(p, "joiner.sh/")
	}
	return out
}

// uncommented returns the names of exported fields that no comment stands above or behind.
func uncommented(s *ast.StructType) (out []string) {
	for _, f := range s.Fields.List {
		for _, n := range f.Names {
			if n.IsExported() && f.Doc == nil && f.Comment == nil {
				out = append(out, n.Name)
			}
		}
	}
	return out
}

// Every exported field of what a decision returns says what it is.
func TestResultsSayWhatTheirFieldsAre(t *testing.T) {
	r := resultTypes{map[string]*ast.StructType{}, map[*ast.StructType]map[string]string{}, map[string]bool{}}
	files := map[*ast.File]string{}
	eachGoFile(t, func(folder string, f *ast.File) {
		if !resultPackage(folder) {
			return
		}
		files[f] = folder
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					r.structs[folder+"."+spec.Name.Name], r.imports[s] = s, importsOf(f)
				}
			}
			return true
		})
	})
	for f, folder := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() || fn.Type.Results == nil ||
				fn.Recv != nil && !ast.IsExported(receiverType(fn.Recv.List[0].Type)) {
				continue
			}
			for _, result := range fn.Type.Results.List {
				r.follow(folder, importsOf(f), result.Type)
			}
		}
	}
	if !r.found["pkg/disruption.Command"] || !r.found["pkg/model/plan.Launch"] {
		t.Fatalf("the results of decisions were not found: %v", r.found)
	}
	for name := range r.found {
		for _, field := range uncommented(r.structs[name]) {
			t.Errorf("%s.%s: say what it is, its unit, and what none means", name, field)
		}
	}
}
