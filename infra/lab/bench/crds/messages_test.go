package crds

import (
	"slices"
	"strings"
	"testing"

	aws "github.com/aws/karpenter-provider-aws/pkg/apis"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	core "sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/install"
)

// Whoever is refused finds Karpenter's words for it: the messages of its rules are Joiner's, but for those that say more
// or belong to another rule, and the categories of its kinds are too.
func TestMessagesAreKarpenters(t *testing.T) {
	ours := map[string]*unstructured.Unstructured{}
	for _, read := range []func() ([]*unstructured.Unstructured, error){install.CRDs, install.Borrowed} {
		objects, err := read()
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			ours[o.GetName()] = o
		}
	}
	others := otherMessages()
	for _, text := range [][]byte{aws.EC2NodeClassCRD, aws.NodePoolCRD, aws.NodeClaimCRD, aws.NodeOverlayCRD, core.CapacityBufferCRD} {
		var theirs unstructured.Unstructured
		if err := yaml.Unmarshal(text, &theirs.Object); err != nil {
			t.Fatal(err)
		}
		mine := ours[theirs.GetName()]
		if mine == nil {
			t.Errorf("Joiner has no CRD %s", theirs.GetName())
			continue
		}
		want, _, _ := unstructured.NestedStringSlice(theirs.Object, "spec", "names", "categories")
		got, _, _ := unstructured.NestedStringSlice(mine.Object, "spec", "names", "categories")
		if !slices.Equal(got, want) {
			t.Errorf("%s: categories %v, want %v", theirs.GetName(), got, want)
		}
		known := messages(mine.Object, nil)
		found := messages(theirs.Object, nil)
		if len(found) == 0 {
			t.Errorf("%s of Karpenter has no rules", theirs.GetName())
		}
		for _, m := range found {
			other := slices.IndexFunc(others, func(o string) bool { return strings.HasPrefix(m, o) })
			if other < 0 && !slices.Contains(known, m) {
				t.Errorf("%s: Karpenter says %q, Joiner does not", theirs.GetName(), m)
			}
		}
	}
}

// otherMessages are how messages begin that Joiner words in its own way.
func otherMessages() []string {
	return append([]string{
		"invalid resource restricted", // Joiner adds which
		"if set, amiFamily must be '", // six rules of Karpenter are one here
	}, otherMessagesOfRelease()...)
}

// messages are those of all rules in CEL below a schema.
func messages(v any, out []string) []string {
	switch x := v.(type) {
	case map[string]any:
		for key, below := range x {
			rules, _ := below.([]any)
			if key != "x-kubernetes-validations" {
				out = messages(below, out)
				continue
			}
			for _, r := range rules {
				rule, _ := r.(map[string]any)
				if text, _ := rule["message"].(string); text != "" {
					out = append(out, text)
				}
			}
		}
	case []any:
		for _, below := range x {
			out = messages(below, out)
		}
	}
	return out
}
