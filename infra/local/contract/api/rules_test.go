package api

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"joiner.sh/pkg/install"
)

// rule is one rule of a CRD: the field it belongs to ([] stands for an index, {} for a key) and words of its refusal.
type rule struct{ path, words string }

// TestEveryRuleIsTried finds rules of the specs that no manifest in testdata/refused breaks. Rules of status are left
// out: no user writes it.
func TestEveryRuleIsTried(t *testing.T) {
	crds, err := install.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	borrowed, err := install.Borrowed()
	if err != nil {
		t.Fatal(err)
	}
	crds = append(crds, borrowed...)
	total := 0
	for _, o := range crds {
		var crd apiextensions.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &crd); err != nil {
			t.Fatal(err)
		}
		kind := strings.ToLower(crd.Spec.Names.Kind)
		tried, err := os.ReadFile("testdata/refused/" + kind + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		rules := rulesOf("spec", crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
		total += len(rules)
		for _, r := range rules {
			if !r.pattern().Match(tried) {
				t.Errorf("%s: nothing is refused with %q at %s", kind, r.words, r.path)
			}
		}
	}
	if total < 200 {
		t.Errorf("found only %d rules in the CRDs", total)
	}
}

// pattern is a line of testdata/refused that shows the rule at work.
func (r rule) pattern() *regexp.Regexp {
	path := regexp.QuoteMeta(r.path)
	path = strings.ReplaceAll(path, `\[\]`, `\[\d+\]`)
	path = strings.ReplaceAll(path, `\{\}`, `[.\[][^:]+`)
	return regexp.MustCompile(fmt.Sprintf(`(?m)^%s: .*%s`, path, regexp.QuoteMeta(r.words)))
}

func rulesOf(path string, s apiextensions.JSONSchemaProps) []rule {
	var rules []rule
	add := func(there bool, words string) {
		if there {
			rules = append(rules, rule{path, words})
		}
	}
	add(s.Pattern != "", "should match")
	add(len(s.Enum) > 0, "Unsupported value")
	add(s.Minimum != nil, "should be greater than or equal to")
	add(s.Maximum != nil, "should be less than or equal to")
	add(s.MinItems != nil, "should have at least")
	add(s.MinLength != nil, "should be at least")
	add(s.MaxLength != nil, "Too long")
	add(s.MaxItems != nil || s.MaxProperties != nil, "Too many")
	if s.XListType != nil && *s.XListType == "set" {
		rules = append(rules, rule{path + "[]", "Duplicate value"})
	}
	for _, v := range s.XValidations {
		add(true, v.Message)
	}
	for _, r := range s.Required {
		if s.Properties[r].Default == nil { // one that has a default is never missing
			rules = append(rules, rule{path + "." + r, "Required value"})
		}
	}
	for name, child := range s.Properties {
		rules = append(rules, rulesOf(path+"."+name, child)...)
	}
	if s.Items != nil {
		rules = append(rules, rulesOf(path+"[]", *s.Items.Schema)...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		rules = append(rules, rulesOf(path+"{}", *s.AdditionalProperties.Schema)...)
	}
	slices.SortFunc(rules, func(a, b rule) int { return strings.Compare(a.path+a.words, b.path+b.words) })
	return rules
}
