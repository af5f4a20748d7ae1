package stack_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A policy says what of a template breaks it.
type policy func(t *testing.T, w template) []string

// policies hold in every form. The player of CloudFormation in infra/local shows what becomes of a stack without them.
func policies() map[string]policy {
	return map[string]policy{
		"what stays goes with the creation that failed":            retainedTwice,
		"what replaces a resource changes what it stands for":      replacedAlone,
		"private DNS is for everybody in the VPC":                  privateDNSForOne,
		"aliases come after setup":                                 aliasBeforeSetup,
		"endpoints are called as in the partition of their region": foreignEndpoint,
	}
}

func TestPoliciesHoldInEveryForm(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(forms())) {
		w := storedForm(t, name)
		for what, p := range policies() {
			for _, problem := range p(t, w) {
				t.Errorf("%s: %s: %s", name, what, problem)
			}
		}
	}
}

// Each policy finds what breaks it, in a form that is broken so.
func TestPoliciesFindWhatBreaksThem(t *testing.T) {
	set := func(kind, property string, value any) func(*testing.T, template) {
		return func(t *testing.T, w template) {
			for _, r := range w.Resources {
				if r.Type == kind && r.Properties[property] != nil {
					r.Properties[property] = value
					return
				}
			}
			t.Fatalf("no %s has %s", kind, property)
		}
	}
	attribute := func(name string) any { return map[string]any{"Fn::GetAtt": []any{"PreflightResource", name}} }
	for what, breaks := range map[string]map[string]func(*testing.T, template){
		"what stays goes with the creation that failed": {
			"a bucket": func(_ *testing.T, w template) { w.change("Catalog", func(r *resource) { r.DeletionPolicy = "Retain" }) },
			"a version": func(_ *testing.T, w template) {
				w.change("ProvisionCurrentVersion", func(r *resource) { r.DeletionPolicy = "Retain" })
			},
		},
		"what replaces a resource changes what it stands for": {
			"memory that a function is not given": func(_ *testing.T, w template) {
				w.change("SpotInterruptionCurrentVersion", func(r *resource) { r.Properties["Description"] = attribute("Fingerprint") })
			},
			"memory that no version follows": func(_ *testing.T, w template) {
				w.change("ProvisionCurrentVersion", func(r *resource) { r.Properties["Description"] = attribute("Reach") })
			},
			"a version that nothing tells apart": func(_ *testing.T, w template) {
				w.change("ProvisionCurrentVersion", func(r *resource) { delete(r.Properties, "Description") })
			},
			"a resource that follows the cluster": set("AWS::EKS::AccessEntry", "ClusterName", attribute("Endpoint")),
			"a policy of one version": func(_ *testing.T, w template) {
				w.change("ProvisionAliasEventInvokeConfig", func(r *resource) {
					r.Properties["Qualifier"] = map[string]any{"Fn::GetAtt": []any{w.id("ProvisionCurrentVersion"), "Version"}}
				})
			},
		},
		"private DNS is for everybody in the VPC": {
			"one group": set("AWS::EC2::SecurityGroup", "SecurityGroupIngress", []any{map[string]any{"SourceSecurityGroupId": "sg-1"}}),
			"nobody":    set("AWS::EC2::SecurityGroup", "SecurityGroupIngress", nil),
		},
		"aliases come after setup": {
			"an alias that waits for nothing": func(_ *testing.T, w template) {
				w.change("LifecycleAlias", func(r *resource) { r.DependsOn = nil })
			},
		},
		"endpoints are called as in the partition of their region": {
			"China's name": set("AWS::EC2::VPCEndpoint", "ServiceName", "cn.com.amazonaws.us-west-2.ec2"),
		},
	} {
		for name, broken := range breaks {
			w := storedForm(t, "endpoints")
			broken(t, w)
			if found := policies()[what](t, w); len(found) != 1 {
				t.Errorf("%s: %s: found %v, want one", what, name, found)
			}
		}
	}
}

// storedForm reads a form as TestForms keeps it.
func storedForm(t *testing.T, name string) template {
	t.Helper()
	out := template{Resources: map[string]resource{}}
	for _, of := range slices.Compact([]string{"plain", name}) {
		text, err := os.ReadFile(filepath.Join("synthesized", of+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var differs map[string]*resource
		if err := json.Unmarshal(text, &differs); err != nil {
			t.Fatal(err)
		}
		for id, r := range differs {
			if delete(out.Resources, id); r != nil {
				out.Resources[id] = *r
			}
		}
	}
	return out
}

// id is that of the first resource whose id begins so.
func (t template) id(prefix string) string {
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		if strings.HasPrefix(id, prefix) {
			return id
		}
	}
	return ""
}

func (t template) change(prefix string, change func(*resource)) {
	id := t.id(prefix)
	r := t.Resources[id]
	change(&r)
	t.Resources[id] = r
}

// retainedTwice: what was made and stays when its creation fails is in the way of the next creation.
func retainedTwice(_ *testing.T, w template) (problems []string) {
	for _, id := range slices.Sorted(maps.Keys(w.Resources)) {
		if w.Resources[id].DeletionPolicy == "Retain" {
			problems = append(problems, id+" has Retain, want RetainExceptOnCreate")
		}
	}
	return problems
}

// standFor are the attributes of the preflight for which another one stands: it changes when one of them does.
func standFor() map[string][]string {
	reach := []string{"CABundle", "Endpoint", "ServiceCIDR"}
	return map[string][]string{"Reach": reach, "Fingerprint": slices.Sorted(slices.Values(append([]string{"FunctionMemory"}, reach...)))}
}

// replacedAlone: a property that replaces a resource follows the world only where the unit that it is for does. That is a
// version, which Lambda does not publish twice, with its function. Nor does one name a version, of which every deployment
// makes another.
func replacedAlone(t *testing.T, w template) (problems []string) {
	t.Helper()
	replaces := createOnly(t)
	for _, id := range slices.Sorted(maps.Keys(w.Resources)) {
		r := w.Resources[id]
		if r.Type == "AWS::Lambda::Version" {
			function := w.Resources[references(r.Properties["FunctionName"])[0]]
			var stands []string
			for _, a := range preflightAttributes(r.Properties["Description"]) {
				stands = append(stands, standFor()[a]...)
			}
			given := slices.DeleteFunc(preflightAttributes(function.Properties), func(a string) bool {
				return a == "MemoryLimit" // which follows FunctionMemory
			})
			if !slices.Equal(stands, given) {
				problems = append(problems, fmt.Sprintf("%s is another one with %v, its function with %v", id, stands, given))
			}
			continue
		}
		for _, property := range replaces[r.Type] {
			v := r.Properties[property]
			follows := preflightAttributes(v)
			for _, to := range references(v) {
				if w.Resources[to].Type == "AWS::Lambda::Version" {
					follows = append(follows, to)
				}
			}
			if len(follows) > 0 {
				problems = append(problems, fmt.Sprintf("%s is replaced: its %s follows %v", id, property, follows))
			}
		}
	}
	return problems
}

// createOnly are the properties by type whose change makes another resource.
func createOnly(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../local/cloudformation/testdata/schemas.json")
	if err != nil {
		t.Fatal(err)
	}
	var schemas map[string]struct{ CreateOnly []string }
	if err := json.Unmarshal(text, &schemas); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for kind, s := range schemas {
		out[kind] = s.CreateOnly
	}
	return out
}

// preflightAttributes are the attributes of the preflight that a value refers to, each once.
func preflightAttributes(v any) (out []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = append(out, preflightAttributes(e)...)
		}
	case map[string]any:
		if at, ok := v["Fn::GetAtt"].([]any); ok && at[0] == "PreflightResource" {
			out = append(out, at[1].(string))
		}
		for _, argument := range v {
			out = append(out, preflightAttributes(argument)...)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(out)))
}

// privateDNSForOne: an endpoint with private DNS answers for the service to all of the VPC.
func privateDNSForOne(_ *testing.T, w template) (problems []string) {
	found := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(w.Resources)) {
		r := w.Resources[id]
		if r.Type != "AWS::EC2::VPCEndpoint" || r.Properties["PrivateDnsEnabled"] != true {
			continue
		}
		for _, group := range references(r.Properties["SecurityGroupIds"]) {
			admits := text(w.Resources[group].Properties["SecurityGroupIngress"])
			if !found[group] && (!strings.Contains(admits, "CidrIp=0.0.0.0/0") || !strings.Contains(admits, "CidrIpv6=::/0")) {
				found[group] = true
				problems = append(problems, fmt.Sprintf("%s admits %s alone", group, admits))
			}
		}
	}
	return problems
}

// aliasBeforeSetup: what runs before setup has installed what it needs. The webhook's function needs nothing of that, and
// setup its address.
func aliasBeforeSetup(_ *testing.T, w template) (problems []string) {
	for _, id := range slices.Sorted(maps.Keys(w.Resources)) {
		if w.Resources[id].Type == "AWS::Lambda::Alias" && !strings.HasPrefix(id, "Wake") &&
			!w.closure(plainID(id))["SetupResource"] {
			problems = append(problems, id+" does not wait for setup")
		}
	}
	return problems
}

// foreignEndpoint: all forms are for a region that is not named, which is one of the partition aws.
func foreignEndpoint(_ *testing.T, w template) (problems []string) {
	w.each("AWS::EC2::VPCEndpoint", func(id string, p map[string]any) {
		service := strings.ToLower(strings.TrimSuffix(id, "Endpoint"))
		if got := text(p["ServiceName"]); got != "com.amazonaws.${AWS::Region}."+service {
			problems = append(problems, id+" is for "+got)
		}
	})
	return problems
}
