package wire

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tree is a query form by its dotted keys: "Filter.1.Name" is three levels deep.
type tree struct {
	value string
	set   bool
	used  bool
	kids  map[string]*tree
}

func newTree(form url.Values) *tree {
	root := &tree{kids: map[string]*tree{}}
	for key, values := range form {
		at := root
		for part := range strings.SplitSeq(key, ".") {
			next := at.kids[part]
			if next == nil {
				next = &tree{kids: map[string]*tree{}}
				at.kids[part] = next
			}
			at = next
		}
		at.value, at.set = values[0], true
	}
	return root
}

// unreadKeys returns the dotted keys that no field asked for.
func (t *tree) unreadKeys(path string) []string {
	var out []string
	if t.set && !t.used {
		out = append(out, path)
	}
	for name, kid := range t.kids {
		below := name
		if path != "" {
			below = path + "." + name
		}
		out = append(out, kid.unreadKeys(below)...)
	}
	return out
}

// DecodeForm fills the struct that into points at. A field is found under its name or its `query` tag; the tag
// option "member" stands for the lists of the AWS query protocol ("Tags.member.1.Key"), while EC2's are flat.
// A parameter that no field takes is an error: an emulator that drops a wish in silence teaches nonsense.
func DecodeForm(form url.Values, into any) error {
	root := newTree(form)
	for _, envelope := range []string{"Action", "Version", "DryRun"} {
		if kid := root.kids[envelope]; kid != nil {
			kid.used = true
		}
	}
	if err := fillValue(root, reflect.ValueOf(into).Elem(), ""); err != nil {
		return err
	}
	if left := root.unreadKeys(""); len(left) > 0 {
		slices.Sort(left)
		return Fail(400, "UnknownParameter", "The parameter %s is not recognized (the emulator does not model it)",
			left[0])
	}
	return nil
}

// fillValue sets v from t; option is the tag option of the field that v is.
func fillValue(t *tree, v reflect.Value, option string) error {
	if v.Type() == reflect.TypeFor[time.Time]() {
		return fillTime(t, v)
	}
	switch v.Kind() {
	case reflect.Struct:
		return fillStruct(t, v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fillValue(t, v.Elem(), option)
	case reflect.Slice:
		return fillList(t, v, option)
	default:
		return fillScalar(t, v)
	}
}

func fillStruct(t *tree, v reflect.Value) error {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, option, _ := strings.Cut(field.Tag.Get("query"), ",")
		if name == "-" {
			continue
		}
		if field.Anonymous {
			if err := fillStruct(t, v.Field(i)); err != nil {
				return err
			}
			continue
		}
		if name == "" {
			name = field.Name
		}
		kid := t.kids[name]
		if kid == nil {
			continue
		}
		if err := fillValue(kid, v.Field(i), option); err != nil {
			var f *Failure
			if errors.As(err, &f) {
				return err
			}
			return Fail(400, "InvalidParameterValue", "Invalid value for parameter %s: %v", name, err)
		}
	}
	return nil
}

func fillList(t *tree, v reflect.Value, option string) error {
	if option == "member" {
		if t = t.kids["member"]; t == nil {
			return nil
		}
	}
	var numbers []int
	for name := range t.kids {
		n, err := strconv.Atoi(name)
		if err != nil {
			return fmt.Errorf("list index %q", name)
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	list := reflect.MakeSlice(v.Type(), len(numbers), len(numbers))
	for i, n := range numbers {
		if err := fillValue(t.kids[strconv.Itoa(n)], list.Index(i), ""); err != nil {
			return err
		}
	}
	v.Set(list)
	return nil
}

func fillTime(t *tree, v reflect.Value) error {
	t.used = true
	at, err := time.Parse(time.RFC3339, t.value)
	if err != nil {
		return fmt.Errorf("parse time %q", t.value)
	}
	v.Set(reflect.ValueOf(at))
	return nil
}

func fillScalar(t *tree, v reflect.Value) error {
	t.used = true
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(t.value)
	case reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(t.value)
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		var n int64
		n, err = strconv.ParseInt(t.value, 10, 64)
		v.SetInt(n)
	case reflect.Float64:
		var f float64
		f, err = strconv.ParseFloat(t.value, 64)
		v.SetFloat(f)
	default:
		err = fmt.Errorf("no rule for %s", v.Type())
	}
	return err
}
