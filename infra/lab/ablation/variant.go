package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// asItIs names the variant that changes nothing.
const asItIs = "as it is"

// variant is a change of the packer.
type variant struct {
	Name  string
	Edits []edit
}

// edit replaces a text that occurs once in a file.
type edit struct{ file, old, with string }

// listVariants lists the layers of the file, then half and double of each constant of the rooms.
func listVariants(root fs.FS, layers, rooms string) ([]variant, error) {
	text, err := fs.ReadFile(root, layers)
	if err != nil {
		return nil, fmt.Errorf("read the layers: %w", err)
	}
	out, err := parseLayers(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", layers, err)
	}
	for _, room := range strings.FieldsFunc(rooms, func(r rune) bool { return r == ',' }) {
		files, err := fs.Glob(root, path.Join(room, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			of, err := varyConstants(root, file)
			if err != nil {
				return nil, err
			}
			out = append(out, of...)
		}
	}
	return out, nil
}

// parseLayers reads layers: a line "layer NAME", then for each edit a line "in FILE", lines "- OLD" and lines "+ NEW".
// Lines that begin with # are comments.
func parseLayers(text string) (out []variant, err error) {
	for n, line := range strings.Split(text, "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		if verb == "" || strings.HasPrefix(verb, "#") {
			continue
		}
		if verb == "layer" {
			out = append(out, variant{Name: rest})
			continue
		}
		if len(out) == 0 || verb != "in" && len(out[len(out)-1].Edits) == 0 {
			return nil, fmt.Errorf("line %d: %q stands before a layer and its file", n+1, line)
		}
		v := &out[len(out)-1]
		switch verb {
		case "in":
			v.Edits = append(v.Edits, edit{file: rest})
		case "-":
			v.Edits[len(v.Edits)-1].old += rest + "\n"
		case "+":
			v.Edits[len(v.Edits)-1].with += rest + "\n"
		default:
			return nil, fmt.Errorf("line %d: %q begins with none of layer, in, - and +", n+1, line)
		}
	}
	return out, nil
}

// varyConstants makes two variants of each number, other than 0, 1 and 2, in a constant of the file: half and double;
// of a part between a half and one, half and double of what it lacks to one.
func varyConstants(root fs.FS, file string) (out []variant, err error) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, value := range spec.Values {
			if lit := chosenNumber(value); lit != nil {
				at := fset.Position(lit.Pos()).Offset
				name := path.Base(path.Dir(file)) + "." + spec.Names[i].Name
				out = append(out, varyNumber(name, file, string(text), lit.Value, at)...)
			}
		}
		return true
	})
	return out, nil
}

// chosenNumber returns the number in the expression, nil for none or for 0, 1 and 2.
func chosenNumber(value ast.Expr) (lit *ast.BasicLit) {
	ast.Inspect(value, func(n ast.Node) bool {
		l, ok := n.(*ast.BasicLit)
		number := ok && (l.Kind == token.INT || l.Kind == token.FLOAT)
		if lit == nil && number && l.Value != "0" && l.Value != "1" && l.Value != "2" {
			lit = l
		}
		return lit == nil
	})
	return lit
}

// varyNumber makes the variants of a number that stands at the offset of the text.
func varyNumber(name, file, text, number string, at int) []variant {
	x, err := strconv.ParseFloat(strings.ReplaceAll(number, "_", ""), 64)
	if err != nil {
		return nil // hexadecimal: bits, no amount
	}
	half, double := x/2, 2*x
	switch {
	case !strings.ContainsAny(number, ".e"):
		half = float64(int(x) / 2)
	case x > 0.5 && x < 1:
		half, double = 1-(1-x)/2, 1-2*(1-x)
	}
	of := func(what string, to float64) variant {
		// the whole file is what is replaced: a number may occur more than once
		with := text[:at] + strconv.FormatFloat(to, 'f', -1, 64) + text[at+len(number):]
		return variant{fmt.Sprintf("%s %s: %s", name, number, what), []edit{{file, text, with}}}
	}
	return []variant{of("half", half), of("double", double)}
}

// apply returns the files as the variant changes them.
func (v variant) apply(root fs.FS) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, e := range v.Edits {
		text, changed := out[e.file]
		if !changed {
			var err error
			if text, err = fs.ReadFile(root, e.file); err != nil {
				return nil, fmt.Errorf("%s: %w", v.Name, err)
			}
		}
		if n := strings.Count(string(text), e.old); n != 1 {
			return nil, fmt.Errorf("%s: in %s the text to replace occurs %d times, not once:\n%s", v.Name, e.file, n, e.old)
		}
		out[e.file] = []byte(strings.Replace(string(text), e.old, e.with, 1))
	}
	return out, nil
}
