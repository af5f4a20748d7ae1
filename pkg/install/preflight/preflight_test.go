package preflight

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/settings"
)

// world is what a scenario changes of a deployment that nothing is wrong with.
type world struct {
	Plan   StackPlan
	Before *StackPlan
	Facts  Facts
}

func well() world {
	return world{
		Plan: StackPlan{Cluster: "shop", Region: "us-west-2", MadeNodeRoles: []string{"KarpenterNodeRole-shop"}, Reserved: 204, ForNotices: 200, FunctionMemory: 1024},
		Facts: Facts{Cluster: Cluster{Name: "shop", Region: "us-west-2", Found: true, Status: "ACTIVE", Mode: "API", Public: true, Private: true, CIDRs: []string{"0.0.0.0/0"}},
			Limit: 1000, Free: 1000},
	}
}

// TestScenarios plays testdata: "check" prints what is found, and the refusal, of a deployment that is well but for
// what is given as YAML.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "check" {
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			w := well()
			if err := yaml.UnmarshalStrict([]byte(d.Input), &w); err != nil {
				d.Fatalf(t, "%v", err)
			}
			var b strings.Builder
			found := Check(w.Plan, w.Before, w.Facts)
			if w.Plan.FunctionMemory == settings.Auto {
				fmt.Fprintf(&b, "%d MiB\n", ChooseMemory(w.Plan, w.Facts))
			}
			for _, x := range found {
				fmt.Fprintf(&b, "%s %s: %s\n", x.Level, x.About, x.What)
				if x.Mend != "" {
					fmt.Fprintf(&b, "    %s\n", x.Mend)
				}
			}
			if err := Refusal(found); err != nil {
				fmt.Fprintf(&b, "refused: %v\n", err)
			} else {
				b.WriteString("deployed\n")
			}
			return b.String()
		})
	})
}

// The preflight reads what the stack wrote.
func TestAPlanSurvivesItsProperties(t *testing.T) {
	want := StackPlan{Cluster: "shop", Region: "us-west-2", Observe: true, NodeRole: "nodes", WindowsNodeRole: "windows", MadeNodeRoles: []string{"a", "b"}, NodePolicies: []string{"p"}, VPC: "vpc-1",
		Subnets: []string{"subnet-1", "subnet-2"}, Endpoints: []string{"ec2"}, Reserved: 204, ForNotices: 200, ForReservations: 10, GivenRegion: "us-west-2", Push: true, ZonalShift: true, FunctionMemory: 1024, MemoryLike: "joiner-shop-provision", Deployment: "7"}
	got, whole := ReadPlan(want.Properties(), "us-west-2")
	if diff := cmp.Diff(want, got); diff != "" || !whole {
		t.Errorf("whole %t, (-want +got):\n%s", whole, diff)
	}
	want.FunctionMemory = settings.Auto
	if got, _ := ReadPlan(want.Properties(), "us-west-2"); !cmp.Equal(want, got) {
		t.Errorf("auto (-want +got):\n%s", cmp.Diff(want, got))
	}
	if _, whole := ReadPlan(map[string]any{"Reserved": "4", "NodeRole": map[string]any{"Ref": "X"}}, ""); whole {
		t.Error("properties without roles count as whole")
	}
}

// CloudFormation takes 4,096 bytes.
func TestARefusalIsNotTooLong(t *testing.T) {
	w := well()
	w.Plan.VPC = "vpc-1"
	for i := range 64 {
		w.Plan.Subnets = append(w.Plan.Subnets, fmt.Sprintf("subnet-%017d", i))
	}
	said := Refusal(Check(w.Plan, nil, w.Facts)).Error()
	if len(said) > 3500 || !strings.HasPrefix(said, "64 things are wrong: 1) ") || !strings.Contains(said, " more: joiner doctor --before-deploy") {
		t.Errorf("%d bytes: %s", len(said), said)
	}
}
