package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// What is printed for somebody else to apply is what setup applies, and then what setup may do.
func TestManifestsOfSomebodyElse(t *testing.T) {
	own, err := Objects()
	if err != nil {
		t.Fatal(err)
	}
	all, err := External()
	if err != nil || len(all) != len(own)+2 {
		t.Fatalf("%d objects, %v; want those %d of setup and two more", len(all), err, len(own))
	}
	text, err := ManifestText(all)
	if err != nil {
		t.Fatal(err)
	}
	read, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(all, read); d != "" {
		t.Errorf("what is read is not what was written:\n%s", d)
	}
	var role rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(all[len(own)].Object, &role, true); err != nil {
		t.Fatal(err)
	}
	for _, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			if verb != "get" && verb != "list" && verb != "patch" && verb != "delete" || verb != "get" && strings.Contains(strings.Join(rule.APIGroups, " "), "authorization") {
				t.Errorf("setup may %s %v: it is no administrator", verb, rule.Resources)
			}
		}
	}
}

func TestDifferencesFromWhatIsNeeded(t *testing.T) {
	want := map[string]any{"kind": "X", "metadata": map[string]any{"name": "a", "creationTimestamp": nil}, "spec": map[string]any{
		"list": []any{map[string]any{"min": int64(1), "on": false}, "b"}, "text": "", "none": map[string]any{}, "rules": []any{}}}
	for name, c := range map[string]struct {
		change func(spec map[string]any) map[string]any
		at     string
	}{
		"the same, with what the API server adds": {func(s map[string]any) map[string]any {
			return map[string]any{"list": []any{map[string]any{"min": float64(1), "default": "x"}, "b"}, "more": true}
		}, ""},
		"another number": {func(map[string]any) map[string]any {
			return map[string]any{"list": []any{map[string]any{"min": int64(2)}, "b"}}
		}, "spec.list[0].min"},
		"a field less": {func(map[string]any) map[string]any { return map[string]any{"list": []any{map[string]any{}, "b"}} }, "spec.list[0].min"},
		"an entry less": {func(map[string]any) map[string]any {
			return map[string]any{"list": []any{map[string]any{"min": int64(1)}}}
		}, "spec.list"},
		"an entry more": {func(map[string]any) map[string]any {
			return map[string]any{"list": []any{map[string]any{"min": int64(1)}, "b", "c"}}
		}, "spec.list"},
		"switched on there": {func(map[string]any) map[string]any {
			return map[string]any{"list": []any{map[string]any{"min": int64(1), "on": true}, "b"}}
		}, "spec.list[0].on"},
		"nothing": {func(map[string]any) map[string]any { return nil }, "spec.list"},
	} {
		have := map[string]any{"kind": "X", "metadata": map[string]any{"name": "a", "uid": "1"}, "spec": c.change(nil)}
		if at := FirstDifference(want, have); at != c.at {
			t.Errorf("%s: differs at %q, want %q", name, at, c.at)
		}
	}
}
