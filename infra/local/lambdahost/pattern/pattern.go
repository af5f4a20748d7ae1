package pattern

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Pattern is one compiled event pattern. It is safe for use by many goroutines.
type Pattern struct {
	root object
}

// object is what a pattern asks of one JSON object: all fields, and of each $or at least one branch.
type object struct {
	fields       []field
	alternatives [][]object
}

// field asks something of one member: either it is an object that fits, or a leaf with a value that fits a test.
type field struct {
	name  string
	inner *object
	tests []test
}

// test accepts or refuses one value of a field. Absent tells it that the event has no such leaf.
type test func(value any, absent bool) bool

// CompilePattern reads an event pattern. The error of a pattern that cannot be understood names the path of what is
// wrong.
func CompilePattern(text []byte) (*Pattern, error) {
	var raw any
	if err := decodeJSON(text, &raw); err != nil {
		return nil, fmt.Errorf("parse event pattern: %w", err)
	}
	top, ok := raw.(map[string]any)
	if !ok {
		return nil, errors.New("parse event pattern: it is not a JSON object")
	}
	root, err := compileObject("", top)
	if err != nil {
		return nil, fmt.Errorf("compile event pattern: %w", err)
	}
	return &Pattern{root: root}, nil
}

// MatchEvent reports whether the event, a JSON object, fits. The error says that the event is no JSON object.
func (p *Pattern) MatchEvent(event []byte) (bool, error) {
	var raw any
	if err := decodeJSON(event, &raw); err != nil {
		return false, fmt.Errorf("parse event: %w", err)
	}
	top, ok := raw.(map[string]any)
	if !ok {
		return false, errors.New("parse event: it is not a JSON object")
	}
	return p.root.match(top), nil
}

// decodeJSON keeps numbers as text, because EventBridge compares exact numbers by their text.
func decodeJSON(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("more than one JSON value")
	}
	return nil
}

func compileObject(path string, raw map[string]any) (object, error) {
	var o object
	if len(raw) == 0 {
		return o, fmt.Errorf("%s: an empty object matches nothing in EventBridge", pathName(path))
	}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		here := path + "." + name
		if name == "$or" {
			branches, err := compileOr(here, raw[name])
			if err != nil {
				return o, err
			}
			o.alternatives = append(o.alternatives, branches)
			continue
		}
		f, err := compileField(here, name, raw[name])
		if err != nil {
			return o, err
		}
		o.fields = append(o.fields, f)
	}
	return o, nil
}

func compileOr(path string, raw any) ([]object, error) {
	list, ok := raw.([]any)
	if !ok || len(list) < 2 {
		return nil, fmt.Errorf("%s: wants an array of at least two patterns", pathName(path))
	}
	var out []object
	for i, item := range list {
		here := fmt.Sprintf("%s[%d]", path, i)
		branch, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: is not an object", pathName(here))
		}
		o, err := compileObject(here, branch)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

func compileField(path, name string, raw any) (field, error) {
	f := field{name: name}
	switch v := raw.(type) {
	case map[string]any:
		inner, err := compileObject(path, v)
		f.inner = &inner
		return f, err
	case []any:
		if len(v) == 0 {
			return f, fmt.Errorf("%s: an empty array matches nothing", pathName(path))
		}
		for i, item := range v {
			t, err := compileTest(fmt.Sprintf("%s[%d]", path, i), item)
			if err != nil {
				return f, err
			}
			f.tests = append(f.tests, t)
		}
		return f, nil
	default:
		return f, fmt.Errorf("%s: wants an object or an array of values, not %T", pathName(path), raw)
	}
}

// match treats a missing or non-object value as an object without members, so that exists:false works at depth.
func (o object) match(event map[string]any) bool {
	for _, f := range o.fields {
		value, present := event[f.name]
		if !f.match(value, present) {
			return false
		}
	}
	for _, branches := range o.alternatives {
		if !slices.ContainsFunc(branches, func(b object) bool { return b.match(event) }) {
			return false
		}
	}
	return true
}

func (f field) match(value any, present bool) bool {
	if f.inner == nil {
		return f.matchLeaf(scalarLeaves(value, present))
	}
	switch v := value.(type) {
	case map[string]any:
		return f.inner.match(v)
	case []any:
		// All that the inner pattern asks must hold for one and the same element.
		return slices.ContainsFunc(v, func(item any) bool {
			m, ok := item.(map[string]any)
			return ok && f.inner.match(m)
		})
	default:
		return f.inner.match(nil)
	}
}

func (f field) matchLeaf(values []any) bool {
	for _, t := range f.tests {
		if len(values) == 0 && t(nil, true) {
			return true
		}
		if slices.ContainsFunc(values, func(v any) bool { return t(v, false) }) {
			return true
		}
	}
	return false
}

// scalarLeaves lists the scalar values of a field. An object is no leaf, so that exists means for it what it means in
// AWS.
func scalarLeaves(value any, present bool) []any {
	if !present {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		return nil
	case []any:
		var out []any
		for _, item := range v {
			out = append(out, scalarLeaves(item, true)...)
		}
		return out
	default:
		return []any{v}
	}
}

// pathName names a path for people; the root has no name of its own.
func pathName(path string) string {
	if path == "" {
		return "$"
	}
	return "$" + path
}
