package cluster_test

import (
	"reflect"
	"testing"

	"joiner.sh/pkg/model/cluster"
)

// Settings are plain values, and a stored pass has all of them: a replay decides by what the pass decided by. How much
// work a measurement asks for is no setting of anybody.
func TestSettingsAreStored(t *testing.T) {
	for f := range reflect.TypeFor[cluster.Settings]().Fields() {
		switch f.Type.Kind() {
		case reflect.Interface, reflect.Func, reflect.Pointer, reflect.Chan:
			t.Errorf("%s is a %s, which cannot be stored", f.Name, f.Type)
		}
		if left := f.Tag.Get("json") == "-"; left != (f.Name == "PackingEffort") {
			t.Errorf("%s is left out of what is stored: %t", f.Name, left)
		}
	}
}
