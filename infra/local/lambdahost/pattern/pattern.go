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

// object is what a pattern asks of one JSON object: all fields.
type object []field

// field asks something of one member: either it is an object that fits, or a leaf with one of the values.
type field struct {
	name   string
	inner  object // nil: a leaf
	values []any
}

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
	if len(raw) == 0 {
		return nil, fmt.Errorf("%s: an empty object matches nothing in EventBridge", pathName(path))
	}
	var o object
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		here := path + "." + name
		if name == "$or" {
			return nil, fmt.Errorf("%s: unknown operator %q", pathName(here), name)
		}
		f, err := compileField(here, name, raw[name])
		if err != nil {
			return nil, err
		}
		o = append(o, f)
	}
	return o, nil
}

func compileField(path, name string, raw any) (field, error) {
	f := field{name: name}
	switch v := raw.(type) {
	case map[string]any:
		var err error
		f.inner, err = compileObject(path, v)
		return f, err
	case []any:
		if len(v) == 0 {
			return f, fmt.Errorf("%s: an empty array matches nothing", pathName(path))
		}
		for i, item := range v {
			if err := checkValue(fmt.Sprintf("%s[%d]", path, i), item); err != nil {
				return f, err
			}
		}
		f.values = v
		return f, nil
	default:
		return f, fmt.Errorf("%s: wants an object or an array of values, not %T", pathName(path), raw)
	}
}

// checkValue refuses an entry of a leaf array that is not a plain value.
func checkValue(path string, raw any) error {
	switch v := raw.(type) {
	case string, json.Number, bool, nil:
		return nil
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			return fmt.Errorf("%s: unknown operator %q", pathName(path+"."+name), name)
		}
	}
	return fmt.Errorf("%s: wants a value, not %T", pathName(path), raw)
}

func (o object) match(event map[string]any) bool {
	return !slices.ContainsFunc(o, func(f field) bool {
		value, present := event[f.name]
		return !present || !f.match(value)
	})
}

// match looks into an array: one and the same element must have all that an inner pattern asks.
func (f field) match(value any) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, f.match)
	case map[string]any:
		return f.inner != nil && f.inner.match(v)
	default:
		return slices.Contains(f.values, value)
	}
}

// pathName names a path for people; the root has no name of its own.
func pathName(path string) string {
	if path == "" {
		return "$"
	}
	return "$" + path
}
