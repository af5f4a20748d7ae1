package nodeclass_test

import (
	"fmt"
	"testing"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/nodeclass"
)

// A class forgets one type and keeps the others, or all of them with what nobody can read.
func TestClassesForget(t *testing.T) {
	const (
		memory = `{"of":"x","types":{"c5.large":{"mib":3500,"seen":"2026-11-20"},"m5.large":{"mib":7500,"seen":"2026-11-22"}}}`
		short  = `{"of":"x","seen":[{"type":"m5.large","instance":"i-1","has":[{"name":"cpu","count":1500}],"at":"2026-11-22T00:00:00Z"}]}`
		rest   = `{"of":"x","types":{"c5.large":{"mib":3500,"seen":"2026-11-20"}}}`
	)
	for _, c := range []struct{ memory, short, name, want string }{
		{memory, short, "", "map[] [joiner.sh/observed-memory joiner.sh/observed-shortfalls]"},
		{memory, short, "m5.large", "map[joiner.sh/observed-memory:" + rest + "] [joiner.sh/observed-shortfalls]"},
		{rest, short, "c5.large", "map[] [joiner.sh/observed-memory]"},
		{memory, short, "m5.xlarge", "map[] []"},
		{"[", "[", "", "map[] [joiner.sh/observed-memory joiner.sh/observed-shortfalls]"},
		{"[", "[", "m5.large", "map[] []"},
	} {
		cl := class()
		cl.Annotations = map[string]string{v1.AnnotationObservedMemory: c.memory, v1.AnnotationObservedShortfalls: c.short, "mine": "1"}
		set, remove := nodeclass.WithoutLearned(cl, c.name)
		if got := fmt.Sprint(set, remove); got != c.want {
			t.Errorf("%q of %s and %s: %s, want %s", c.name, c.memory, c.short, got, c.want)
		}
	}
	if set, remove := nodeclass.WithoutLearned(class(), ""); len(set)+len(remove) > 0 {
		t.Errorf("nothing learned: %v, %v", set, remove)
	}
}
