package cloudformation

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What makes another resource is what the schema of the type says, as cfn-lint ships it (of 2026-10-20). Of a custom
// resource the schema says that another service token does; CloudFormation refuses it.
func TestWhatIsReplacedIsWhatTheSchemasSay(t *testing.T) {
	text, err := os.ReadFile("testdata/schemas.json")
	if err != nil {
		t.Fatal(err)
	}
	var schemas map[string]struct{ CreateOnly []string }
	if err := json.Unmarshal(text, &schemas); err != nil {
		t.Fatal(err)
	}
	for kind, r := range typeRules() {
		s, known := schemas[kind]
		if !known {
			t.Errorf("%s: no schema", kind)
		}
		if r.all || kind == "AWS::CloudFormation::CustomResource" {
			if len(s.CreateOnly) == 0 {
				t.Errorf("%s: nothing replaces it", kind)
			}
			continue
		}
		got := slices.Sorted(slices.Values(r.replaced))
		if diff := cmp.Diff(s.CreateOnly, got); len(s.CreateOnly)+len(got) > 0 && diff != "" {
			t.Errorf("%s (-schema +rule):\n%s", kind, diff)
		}
		if r.name != "" && !slices.Contains(r.replaced, r.name) {
			t.Errorf("%s: its name %s can be changed in place", kind, r.name)
		}
	}
}

func TestWhatAPolicyKeeps(t *testing.T) {
	for _, c := range []struct {
		policy          string
		deleted, undone bool
	}{{"", false, false}, {"Delete", false, false}, {"Retain", true, true}, {"RetainExceptOnCreate", true, false}} {
		if isRetained(c.policy, false) != c.deleted || isRetained(c.policy, true) != c.undone {
			t.Errorf("%q keeps %t and in a rollback %t, want %t and %t", c.policy, isRetained(c.policy, false), isRetained(c.policy, true), c.deleted, c.undone)
		}
	}
}
