package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
)

func TestActionsAsText(t *testing.T) {
	for _, c := range []struct {
		action plan.Action
		want   string
	}{
		{plan.Action{Do: plan.DeleteClaim, Claim: "c1", Reason: "expired", Why: "it is old"}, "delete claim c1: expired, it is old"},
		{plan.Action{Do: plan.ReleaseNode, Node: "n1", Claim: "c1"}, "release node n1 claim c1"},
		{plan.Action{Do: plan.Evict, Pod: "ns/p", Node: "n1"}, "evict pod ns/p node n1"},
		{plan.Action{Do: plan.Terminate, Instance: "i-1", Reason: "leaked"}, "terminate instance i-1: leaked"},
		{plan.Action{Do: plan.SetDeadline, Claim: "c1", Why: "soon"}, "set deadline claim c1: soon"},
		{plan.Action{Do: plan.WriteStatus, Claim: "c1", Conditions: []cluster.Condition{
			{Type: "Registered", Status: "True", Reason: "Registered"}, {Type: "Drained", Status: "Unknown", Reason: "Draining"}}},
			"status claim c1 Registered=True Drained=Unknown(Draining)"},
		{plan.Action{Do: plan.Terminate}, "terminate"},
		{plan.Action{Do: plan.CountPool, Pool: "p", Has: resources.List{CPU: 1500}.With("nodes", 2)}, "count pool p cpu=1500m nodes=2"},
		{plan.Action{Do: plan.CountPool, Pool: "p"}, "count pool p nothing"},
		{plan.Action{Do: plan.Registrations, Pool: "p", Outcomes: []cluster.Registration{{ClaimUID: "u1", OK: true}, {ClaimUID: "u2", Reason: "LaunchFailed"}}},
			"registrations pool p u1=ok u2=LaunchFailed"},
		{plan.Action{Do: plan.Tell, Claim: "c1", Node: "n1", Reason: "FailedDraining", Why: "x"}, "tell node n1 claim c1: FailedDraining, x"},
	} {
		if got := c.action.String(); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

func TestPlanAsText(t *testing.T) {
	offering := instancetypes.Offering{OfferingKey: instancetypes.OfferingKey{CapacityType: "spot", Type: "m5.large", Zone: "a"}, Price: 0.04}
	p := plan.Plan{
		Launches: []plan.Launch{
			{Pool: "p", Choice: offering, Types: []string{"m5.large", "m5.xlarge"}, Pods: []string{"ns/a", "ns/b"}},
			{Pool: "p", Choice: offering, Types: []string{"m5.large"}, Pods: []string{"ns/c", "ns/d", "ns/e", "ns/f", "ns/g", "ns/h"}},
		},
		Existing: []plan.Placement{{Pod: "ns/y", Node: "n2"}, {Pod: "ns/x", Node: "n1"}, {Pod: "ns/z", Node: "n2"}},
		Unplaced: []plan.Unplaced{{Pod: "ns/u", Why: []string{"too big", "too far"}}},
		Skipped:  []plan.Skip{{Pool: "q", Why: "not ready"}},
	}
	want := []string{
		"launch spot m5.large in a from pool p at 0.0400 USD/h (2 types possible) for ns/a,ns/b",
		"launch spot m5.large in a from pool p at 0.0400 USD/h (1 types possible) for ns/c,ns/d,ns/e,ns/f and 2 more",
		"use n1 for ns/x",
		"use n2 for ns/y,ns/z",
		"unschedulable ns/u: too big; too far",
		"skip pool q: not ready",
	}
	if diff := cmp.Diff(want, p.Lines()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if got := p.String(); got != strings.Join(want, "\n") {
		t.Errorf("text:\n%s", got)
	}
	if p.TotalPrice() != 0.08 {
		t.Errorf("price %v", p.TotalPrice())
	}
	if got := p.Unplaced[0].Message(); got != "too big; too far" {
		t.Errorf("message %q", got)
	}
}
