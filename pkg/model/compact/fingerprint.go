package compact

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/requirements"
)

// Fingerprint is a text that changes with the names, types and order of what values of the type consist of, so that
// whoever reads can tell bytes of another type. It fails for types that cannot be written.
func Fingerprint(t reflect.Type) (string, error) {
	var out strings.Builder
	err := describeType(&out, t, nil)
	return out.String(), err
}

func describeType(out *strings.Builder, t reflect.Type, inside []reflect.Type) error {
	if slices.Contains(inside, t) {
		return fmt.Errorf("%s contains itself", t)
	}
	inside = append(inside, t)
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64, reflect.Int, reflect.Int8, reflect.Int16,
		reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		out.WriteString(t.Kind().String())
		return nil
	case reflect.Pointer, reflect.Slice:
		out.WriteString(t.Kind().String() + " ")
		return describeType(out, t.Elem(), inside)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return fmt.Errorf("%s has other keys than strings", t)
		}
		out.WriteString("map ")
		return describeType(out, t.Elem(), inside)
	case reflect.Struct:
		return describeStruct(out, t, inside)
	}
	return fmt.Errorf("%s cannot be written", t)
}

func describeStruct(out *strings.Builder, t reflect.Type, inside []reflect.Type) error {
	switch t {
	case reflect.TypeFor[time.Time]():
		out.WriteString("time")
		return nil
	case reflect.TypeFor[requirements.Set]():
		return describeType(out, reflect.TypeFor[[]requirements.Requirement](), inside)
	}
	if t.NumField() == 0 {
		return fmt.Errorf("%s has no fields", t)
	}
	out.WriteString("{")
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			return fmt.Errorf("%s has the field %s, which is not exported", t, f.Name)
		}
		out.WriteString(f.Name + " ")
		if err := describeType(out, f.Type, inside); err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
		out.WriteString(";")
	}
	out.WriteString("}")
	return nil
}
