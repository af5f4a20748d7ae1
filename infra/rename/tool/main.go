// renamer: moves packages and renames symbols over several modules in one go, by type information.
// usage: renamer -root DIR -moves moves.tsv -symbols symbols.tsv -files files.tsv [-dry]
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

type pos struct {
	file string
	off  int
}
type edit struct {
	from, to int
	text     string
}

var (
	root   = flag.String("root", ".", "")
	movesF = flag.String("moves", "", "")
	symsF  = flag.String("symbols", "", "")
	filesF = flag.String("files", "", "")
	dry    = flag.Bool("dry", false, "")
	mods   = flag.String("modules", ".,infra/local,infra/bench", "")
)

func rows(p string, n int) [][]string {
	if p == "" {
		return nil
	}
	b, err := os.ReadFile(p)
	if err != nil {
		log.Fatal(err)
	}
	var out [][]string
	for _, l := range strings.Split(string(b), "\n") {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		f := strings.Fields(l)
		if len(f) < n {
			log.Fatalf("%s: %q", p, l)
		}
		out = append(out, f)
	}
	return out
}

type uf map[string]string

func (u uf) find(a string) string {
	for u[a] != "" && u[a] != a {
		a = u[a]
	}
	return a
}
func (u uf) join(a, b string) { x, y := u.find(a), u.find(b); if x != y { u[x] = y } }

func sigKey(t types.Type) string {
	s, ok := t.(*types.Signature)
	if !ok {
		return "?"
	}
	out := ""
	for i := 0; i < s.Params().Len(); i++ {
		out += types.TypeString(s.Params().At(i).Type(), nil) + ","
	}
	out += "->"
	for i := 0; i < s.Results().Len(); i++ {
		out += types.TypeString(s.Results().At(i).Type(), nil) + ","
	}
	if s.Variadic() {
		out += "..."
	}
	return out
}

func main() {
	flag.Parse()
	rt, _ := filepath.Abs(*root)
	moves := map[string]string{} // import path -> new import path
	pkgName := map[string]string{}
	for _, r := range rows(*movesF, 2) {
		moves["joiner/"+r[0]] = "joiner/" + r[1]
		pkgName["joiner/"+r[0]] = filepath.Base(r[1])
		if len(r) > 2 {
			pkgName["joiner/"+r[0]] = r[2]
		}
	}
	want := map[string]string{} // "joiner/pkg/pack.attempt.settle" -> new
	for _, r := range rows(*symsF, 3) {
		k := "joiner/" + r[0] + "." + r[1]
		if want[k] != "" && want[k] != r[2] {
			log.Printf("table: %s has two new names: %s, %s", k, want[k], r[2])
			continue
		}
		want[k] = r[2]
	}
	var all []*packages.Package
	fset := token.NewFileSet()
	for _, m := range strings.Split(*mods, ",") {
		cfg := &packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedModule,
			Dir: filepath.Join(rt, m), Fset: fset, Tests: true, Env: append(os.Environ(), "GOFLAGS="+map[bool]string{true: "-trimpath -buildvcs=false", false: "-buildvcs=false"}[m == "infra/local"])}
		pats := []string{"./..."}
		if m != "." {
			pats = append(pats, "joiner/pkg/...", "joiner/events/...", "joiner/functions/...", "joiner/infra/...")
		}
		ps, err := packages.Load(cfg, pats...)
		if err != nil {
			log.Fatal(err)
		}
		packages.Visit(ps, nil, func(p *packages.Package) {
			if strings.HasPrefix(p.PkgPath, "joiner/") || p.PkgPath == "joiner" || strings.Contains(p.ID, "joiner/") {
				for _, e := range p.Errors {
					log.Printf("load %s: %v", p.ID, e)
				}
				all = append(all, p)
			}
		})
	}
	log.Printf("%d packages", len(all))
	at := func(p token.Pos) pos { q := fset.Position(p); return pos{q.Filename, q.Offset} }
	key := func(p pos) string { return p.file + ":" + strconv.Itoa(p.off) }
	inRepo := func(p pos) bool { return strings.HasPrefix(p.file, rt+"/") }
	// objects by table
	u := uf{}
	newName := map[string]string{} // group or position key -> new name
	foundKeys := map[string]bool{}
	base := func(path string) string { return strings.TrimSuffix(path, "_test") }
	type meth struct {
		key, label string
		repo       bool
	}
	var named []*types.Named
	seenNamed := map[string]bool{}
	labels := map[string]string{}
	reg := func(k, label, nn string) {
		if old, ok := newName[k]; ok && old != nn {
			log.Printf("conflict: %s -> %s and %s", label, old, nn)
		}
		newName[k] = nn
		labels[k] = label
	}
	byTable := func(label string, o types.Object) {
		if nn, ok := want[label]; ok {
			foundKeys[label] = true
			reg(key(at(o.Pos())), label, nn)
		}
	}
	for _, p := range all {
		if p.Types == nil {
			continue
		}
		sc := p.Types.Scope()
		pp := base(p.PkgPath)
		for _, n := range sc.Names() {
			o := sc.Lookup(n)
			byTable(pp+"."+n, o)
			tn, ok := o.(*types.TypeName)
			if !ok {
				continue
			}
			nm, ok := tn.Type().(*types.Named)
			if !ok {
				continue
			}
			for i := 0; i < nm.NumMethods(); i++ {
				byTable(pp+"."+n+"."+nm.Method(i).Name(), nm.Method(i))
			}
			switch t := nm.Underlying().(type) {
			case *types.Struct:
				for i := 0; i < t.NumFields(); i++ {
					byTable(pp+"."+n+"."+t.Field(i).Name(), t.Field(i))
				}
			case *types.Interface:
				for i := 0; i < t.NumExplicitMethods(); i++ {
					byTable(pp+"."+n+"."+t.ExplicitMethod(i).Name(), t.ExplicitMethod(i))
				}
			}
			k := key(at(tn.Pos())) + p.ID
			if !seenNamed[k] {
				seenNamed[k] = true
				named = append(named, nm)
			}
		}
		// locals types in functions and anonymous interfaces are left out
	}
	for k := range want {
		if !foundKeys[k] {
			log.Printf("not found: %s", k)
		}
	}
	// interfaces: also of dependencies outside the repo
	type iface struct {
		t    *types.Interface
		repo bool
		name string
	}
	var ifs []iface
	seenIf := map[string]bool{}
	addIf := func(tn *types.TypeName) {
		t, ok := tn.Type().Underlying().(*types.Interface)
		if !ok || t.NumMethods() == 0 {
			return
		}
		k := fset.Position(tn.Pos()).String() + tn.Name()
		if tn.Pkg() == nil {
			k = tn.Name()
		}
		_ = k
		ifs = append(ifs, iface{t, tn.Pkg() != nil && inRepo(at(tn.Pos())), tn.Name()})
		seenIf[k] = true
	}
	for _, n := range named {
		addIf(n.Obj())
	}
	for _, n := range []string{"error"} {
		addIf(types.Universe.Lookup(n).(*types.TypeName))
	}
	// std and third-party interfaces referenced in the repo
	seenTN := map[types.Object]bool{}
	for _, p := range all {
		if p.TypesInfo == nil {
			continue
		}
		for _, o := range p.TypesInfo.Uses {
			if tn, ok := o.(*types.TypeName); ok && !seenTN[o] && tn.Pkg() != nil && !inRepo(at(tn.Pos())) {
				seenTN[o] = true
				addIf(tn)
			}
		}
	}
	external := map[string]bool{}
	forbidden := map[string]bool{"String": true, "Error": true, "Unwrap": true, "Is": true, "As": true, "MarshalJSON": true, "UnmarshalJSON": true, "MarshalText": true, "UnmarshalText": true,
		"ServeHTTP": true, "Read": true, "Write": true, "Close": true, "Len": true, "Less": true, "Swap": true, "Push": true, "Pop": true, "RoundTrip": true, "DeepCopy": true, "DeepCopyInto": true, "DeepCopyObject": true, "GetObjectKind": true, "Format": true, "LogValue": true, "Handle": true, "Enabled": true, "WithAttrs": true, "WithGroup": true, "Set": true}
	for _, n := range named {
		ptr := types.NewPointer(n)
		if _, isIf := n.Underlying().(*types.Interface); isIf {
			// interface embedding / assignability among interfaces
		}
		ms := types.NewMethodSet(ptr)
		if types.IsInterface(n) {
			ms = types.NewMethodSet(n)
		}
		if ms.Len() == 0 {
			continue
		}
		names := map[string]types.Object{}
		for i := 0; i < ms.Len(); i++ {
			names[ms.At(i).Obj().Name()] = ms.At(i).Obj()
		}
		for _, i := range ifs {
			if i.t.NumMethods() > ms.Len() {
				continue
			}
			ok := true
			for j := 0; j < i.t.NumMethods() && ok; j++ {
				o := names[i.t.Method(j).Name()]
				// across separate loads type identity fails; compare by signature text
				ok = o != nil && sigKey(o.Type()) == sigKey(i.t.Method(j).Type())
			}
			if !ok {
				continue
			}
			for j := 0; j < i.t.NumMethods(); j++ {
				im := i.t.Method(j)
				a := key(at(names[im.Name()].Pos()))
				if !i.repo || im.Pkg() == nil || !inRepo(at(im.Pos())) {
					if i.t.NumMethods() == 1 || i.t.NumMethods() <= 3 {
						external[a] = true
					}
					continue
				}
				u.join(a, key(at(im.Pos())))
			}
		}
	}
	// groups
	groupName := map[string]string{}
	groupExt := map[string]bool{}
	for k := range external {
		groupExt[u.find(k)] = true
	}
	for k, nn := range newName {
		g := u.find(k)
		if old := groupName[g]; old != "" && old != nn {
			log.Printf("group conflict: %s wants %s, group has %s", labels[k], nn, old)
			continue
		}
		groupName[g] = nn
	}
	nameFor := func(o types.Object) (string, bool) {
		if o == nil || !o.Pos().IsValid() {
			return "", false
		}
		p := at(o.Pos())
		if !inRepo(p) {
			return "", false
		}
		if v, ok := o.(*types.Var); ok && v.Embedded() {
			t := v.Type()
			if pt, ok := t.(*types.Pointer); ok {
				t = pt.Elem()
			}
			if nm, ok := t.(*types.Named); ok {
				nn, ok := groupName[u.find(key(at(nm.Obj().Pos())))]
				return nn, ok
			}
		}
		g := u.find(key(p))
		nn, ok := groupName[g]
		if ok && (groupExt[g] && forbidden[o.Name()]) {
			log.Printf("refused (external interface): %s", o)
			return "", false
		}
		return nn, ok
	}
	edits := map[string]map[int]edit{}
	add := func(p pos, n int, text string) {
		if !inRepo(p) {
			return
		}
		m := edits[p.file]
		if m == nil {
			m = map[int]edit{}
			edits[p.file] = m
		}
		if e, ok := m[p.off]; ok && e.text != text {
			log.Printf("two edits at %s:%d: %s, %s", p.file, p.off, e.text, text)
		}
		m[p.off] = edit{p.off, p.off + n, text}
	}
	clash := map[string]bool{}
	for _, p := range all {
		if p.TypesInfo == nil {
			continue
		}
		for _, f := range p.Syntax {
			fn := fset.Position(f.Pos()).Filename
			if !strings.HasPrefix(fn, rt+"/") {
				continue
			}
			// package clause
			if nn, ok := pkgName[base(p.PkgPath)]; ok && filepath.Dir(fn) == filepath.Join(rt, strings.TrimPrefix(base(p.PkgPath), "joiner/")) {
				old := f.Name.Name
				if strings.HasSuffix(old, "_test") {
					nn += "_test"
				}
				if old != nn {
					add(at(f.Name.Pos()), len(old), nn)
				}
			}
			for _, im := range f.Imports {
				path, _ := strconv.Unquote(im.Path.Value)
				if np, ok := moves[path]; ok {
					add(at(im.Path.Pos()), len(im.Path.Value), strconv.Quote(np))
				}
			}
			for _, d := range f.Decls {
				doc := func(g *ast.CommentGroup, id *ast.Ident) {
					if g == nil || id == nil {
						return
					}
					nn, ok := nameFor(p.TypesInfo.Defs[id])
					if !ok {
						return
					}
					re := regexp.MustCompile(`\b` + regexp.QuoteMeta(id.Name) + `\b`)
					c := g.List[0]
					if loc := re.FindStringIndex(c.Text); loc != nil && loc[0] <= 3 {
						q := at(c.Pos())
						add(pos{q.file, q.off + loc[0]}, len(id.Name), nn)
					}
				}
				switch d := d.(type) {
				case *ast.FuncDecl:
					doc(d.Doc, d.Name)
				case *ast.GenDecl:
					for _, s := range d.Specs {
						switch s := s.(type) {
						case *ast.TypeSpec:
							doc(d.Doc, s.Name)
							doc(s.Doc, s.Name)
							if it, ok := s.Type.(*ast.InterfaceType); ok {
								for _, m := range it.Methods.List {
									if len(m.Names) == 1 {
										doc(m.Doc, m.Names[0])
									}
								}
							}
							if st, ok := s.Type.(*ast.StructType); ok {
								for _, m := range st.Fields.List {
									if len(m.Names) == 1 {
										doc(m.Doc, m.Names[0])
									}
								}
							}
						case *ast.ValueSpec:
							if len(s.Names) > 0 {
								doc(d.Doc, s.Names[0])
								doc(s.Doc, s.Names[0])
							}
						}
					}
				}
			}
		}
		for id, o := range p.TypesInfo.Defs {
			if nn, ok := nameFor(o); ok && id.Name == o.Name() {
				add(at(id.Pos()), len(id.Name), nn)
			}
		}
		for id, o := range p.TypesInfo.Uses {
			if pn, ok := o.(*types.PkgName); ok {
				if nn, ok := pkgName[pn.Imported().Path()]; ok && pn.Name() == pn.Imported().Name() && nn != id.Name {
					add(at(id.Pos()), len(id.Name), nn)
					// clash: another object of that name visible there
					if s := p.Types.Scope().Innermost(id.Pos()); s != nil {
						if _, x := s.LookupParent(nn, id.Pos()); x != nil && x.Pkg() != nil {
							clash[fmt.Sprintf("%s: %s is %v", fset.Position(id.Pos()), nn, x)] = true
						}
					}
				}
				continue
			}
			if nn, ok := nameFor(o); ok && id.Name == o.Name() {
				add(at(id.Pos()), len(id.Name), nn)
				if o.Parent() == o.Pkg().Scope() {
					if s := p.Types.Scope().Innermost(id.Pos()); s != nil && p.Types.Path() == o.Pkg().Path() {
						if _, x := s.LookupParent(nn, id.Pos()); x != nil && x.Parent() != types.Universe {
							if _, renamed := nameFor(x); !renamed {
								clash[fmt.Sprintf("%s: %s shadowed by %v", fset.Position(id.Pos()), nn, x)] = true
							}
						}
					}
				}
			}
		}
		// generic instantiation selections: method/field objects of instantiated types keep position, so they are handled
	}
	var cl []string
	for c := range clash {
		cl = append(cl, c)
	}
	sort.Strings(cl)
	for _, c := range cl {
		fmt.Println("clash:", strings.TrimPrefix(c, rt+"/"))
	}
	n := 0
	for _, m := range edits {
		n += len(m)
	}
	log.Printf("%d edits in %d files, %d clashes", n, len(edits), len(cl))
	if *dry {
		return
	}
	for file, m := range edits {
		b, err := os.ReadFile(file)
		if err != nil {
			log.Fatal(err)
		}
		var es []edit
		for _, e := range m {
			es = append(es, e)
		}
		sort.Slice(es, func(i, j int) bool { return es[i].from > es[j].from })
		for _, e := range es {
			b = append(b[:e.from:e.from], append([]byte(e.text), b[e.to:]...)...)
		}
		if err := os.WriteFile(file, b, 0o644); err != nil {
			log.Fatal(err)
		}
	}
	git := func(args ...string) {
		c := exec.Command("git", args...)
		c.Dir = rt
		if out, err := c.CombinedOutput(); err != nil {
			log.Printf("git %v: %v %s", args, err, out)
		}
	}
	for _, r := range rows(*filesF, 2) {
		git("mv", r[0], filepath.Join(filepath.Dir(r[0]), filepath.Base(r[1])))
	}
	for _, r := range rows(*movesF, 2) {
		if r[0] == r[1] {
			continue
		}
		os.MkdirAll(filepath.Join(rt, filepath.Dir(r[1])), 0o755)
		// only files directly below and testdata; subpackages move by rows of their own
		if _, err := os.Stat(filepath.Join(rt, r[1])); err == nil {
			ents, _ := os.ReadDir(filepath.Join(rt, r[0]))
			for _, e := range ents {
				git("mv", filepath.Join(r[0], e.Name()), filepath.Join(r[1], e.Name()))
			}
			continue
		}
		git("mv", r[0], r[1])
	}
}
