package install

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A condition that reads the groups of a request asks first whether it has any: one that fails refuses the request,
// whoever made it.
func TestConditionsAskWhetherThereAreGroups(t *testing.T) {
	objects, err := RBAC()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, o := range objects {
		conditions, _, _ := unstructured.NestedSlice(o.Object, "spec", "matchConditions")
		for _, c := range conditions {
			text, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), "request.userInfo.groups") {
				continue
			}
			if found++; !strings.Contains(string(text), "has(request.userInfo.groups) \\u0026\\u0026 ") {
				t.Errorf("%s %s: %s", o.GetKind(), o.GetName(), text)
			}
		}
	}
	if found < 3 {
		t.Errorf("%d conditions found", found)
	}
}
