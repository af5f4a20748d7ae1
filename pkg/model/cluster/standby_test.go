package cluster

import (
	api "joiner/pkg/api/v1"
	"testing"

	"joiner/pkg/model/resources"
)

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
