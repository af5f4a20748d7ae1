package cluster

import (
	api "joiner.sh/pkg/api/v1"
	"testing"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
)

// What is paid in advance covers an instance of stopped capacity while it runs, and none that is stopped.
func TestStoppedInstancesDrawOnNoCommitment(t *testing.T) {
	for status, want := range map[string]int64{"": 0, "Unknown": 0, "True": 1, "False": 0} {
		c := Claim{Name: "c1", ProviderID: "i-1", Annotations: map[string]string{api.AnnotationStoppedCapacity: "true"},
			Labels: map[string]string{instancetypes.LabelType: "m5.large", instancetypes.LabelZone: "a", instancetypes.LabelCapacityType: instancetypes.OnDemand}}
		if status != "" {
			c.Conditions = []Condition{{Type: api.ConditionStopped, Status: status}}
		}
		s := Snapshot{Claims: []Claim{c}, Catalog: instancetypes.Catalog{Commitments: []instancetypes.Commitment{{ID: "paid", Type: "m5.large", Room: 1}},
			Types: []instancetypes.Facts{{Name: "m5.large", OnDemandUSD: 0.096}}}}
		if _, left := s.AllotCommitments(); left["paid"] != want {
			t.Errorf("condition Stopped %q: %d of the commitment are left, want %d", status, left["paid"], want)
		}
	}
}

// A held node stands by when nothing but its hold keeps it from being initialized.
func TestStandby(t *testing.T) {
	own := Taint{Key: "joiner.sh/nominated-pods-only", Value: "h", Effect: "NoSchedule"}
	for name, x := range map[string]struct {
		change func(n *Node, c *Claim)
		want   bool
	}{
		"as it should be":    {func(*Node, *Claim) {}, true},
		"not ready":          {func(n *Node, _ *Claim) { n.Ready = false }, false},
		"not registered":     {func(n *Node, c *Claim) { n.Labels = nil }, false},
		"booted":             {func(n *Node, _ *Claim) { n.Taints[0].Value = "new" }, false},
		"opened":             {func(n *Node, _ *Claim) { n.Taints = nil }, false},
		"a startup taint":    {func(n *Node, _ *Claim) { n.Taints = append(n.Taints, Taint{Key: "cni", Effect: "NoSchedule"}) }, false},
		"a taint of its own": {func(n *Node, _ *Claim) { n.Taints = append(n.Taints, Taint{Key: "team", Effect: "NoSchedule"}) }, true},
		"unreachable": {func(n *Node, _ *Claim) {
			n.Taints = append(n.Taints, Taint{Key: "node.kubernetes.io/unreachable", Effect: "NoSchedule"})
		}, false},
		"a resource is lacking": {func(n *Node, _ *Claim) { n.Allocatable = resources.List{} }, false},
		"held for its own pods": {func(_ *Node, c *Claim) { c.Annotations = nil }, false},
	} {
		c := Claim{Name: "r", StartupTaints: []Taint{{Key: "cni", Effect: "NoSchedule"}, own}, Annotations: map[string]string{api.AnnotationNominatedOwners: "a=1"}, Requests: resources.List{CPU: 100}}
		n := Node{Name: "n", Ready: true, Labels: map[string]string{"karpenter.sh/registered": "true"}, Taints: []Taint{own}, Allocatable: resources.List{CPU: 1000}}
		x.change(&n, &c)
		if got := (StateNode{Node: &n, Claim: &c}).ReadyForNominated(); got != x.want {
			t.Errorf("%s: stands by %t", name, got)
		}
	}
}

func TestDisruptionOfAClaim(t *testing.T) {
	for text, want := range map[string]string{"": "", `{"id":"c0","reason":"Empty"}`: "c0", "broken": ""} {
		if got := (Claim{Annotations: map[string]string{api.AnnotationDisruptionCommand: text}}).Disruption(); got != want {
			t.Errorf("%q: disruption %q", text, got)
		}
	}
}
