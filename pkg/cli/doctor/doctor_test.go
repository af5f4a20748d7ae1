package doctor

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/testing/syntax"
)

// well is a cluster with nothing amiss.
func well() Facts {
	f := Facts{
		Cluster: "shop",
		API:     API{Host: "https://shop.example", Version: "v1.36.3"},
		CRDs:    []Object{{Name: "crd/nodepools.karpenter.sh", Found: true}},
		RBAC:    []Object{{Name: "clusterrole/joiner-provision", Found: true}},
		Classes: []Class{{Name: "default", Role: "nodes", Subnets: []Subnet{{"subnet-1", "a", 200}}, Groups: []SecurityGroup{{"sg-1", true}, {"sg-2", false}}}},
		Pools:   []NodePool{{Name: "general", Bounded: true}},
		EKS:     EKS{Found: true, Status: "ACTIVE", Mode: "API", Public: true, CIDRs: []string{"0.0.0.0/0"}, Subnets: []string{"subnet-1"}, SecurityGroups: []string{"sg-1"}},
		Functions: Functions{List: []Function{{Name: "joiner-shop-provision", Found: true, State: "Active", Mode: "act"},
			{Name: "joiner-shop-lifecycle", Found: true, State: "Active", Mode: "act"}}},
		Lambda:   Lambda{Limit: 1000, Unreserved: 796, ForNotices: 100},
		Entries:  Entries{List: []Entry{{Principal: "arn:aws:iam::1:role/path/nodes", Type: "EC2_LINUX"}}},
		Quotas:   Quotas{List: []Quota{{"L-1", "Standard on-demand", 100, 10}}},
		SpotRole: Role{Found: true},
	}
	for _, g := range accessGroups() {
		f.Entries.List = append(f.Entries.List, Entry{Principal: "arn:aws:iam::1:role/" + g, Type: "STANDARD", Groups: []string{g}})
	}
	return f
}

// fieldNames are the names of the fields of Facts.
func fieldNames() (names []string) {
	for f := range reflect.TypeFor[Facts]().Fields() {
		names = append(names, f.Name)
	}
	return names
}

// TestScenarios plays testdata: "examine" prints the findings about a cluster that is well but for the fields given as
// YAML.
func TestScenarios(t *testing.T) {
	words := syntax.NewGrammar(nil, "examine FIELD...")
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := words.Check(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			f := well()
			var given Facts
			if err := yaml.UnmarshalStrict([]byte(d.Input), &given); err != nil {
				t.Fatal(err)
			}
			for _, a := range d.CmdArgs { // fields to take from what is given
				if !slices.Contains(fieldNames(), a.Key) {
					d.Fatalf(t, "%v", syntax.UnknownWord("field", a.Key, fieldNames()...))
				}
				field := reflect.ValueOf(&f).Elem().FieldByName(a.Key)
				field.Set(reflect.ValueOf(given).FieldByName(a.Key))
			}
			var b strings.Builder
			for _, x := range RunChecks(f) {
				fmt.Fprintf(&b, "%s %s: %s\n", x.Level, x.About, x.What)
				if x.Mend != "" {
					fmt.Fprintf(&b, "    %s\n", x.Mend)
				}
			}
			return b.String()
		})
	})
}
