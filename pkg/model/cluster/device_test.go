package cluster

import (
	"strings"
	"testing"

	"joiner.sh/pkg/model/requirements"
)

// Devices that others have on a node which starts are not there for pods, whatever its type has.
func TestDevicesOfANodeThatStarts(t *testing.T) {
	const name = "pcie-bundle.joiner.sh/2_gpu.nvidia.com"
	for _, c := range []struct{ capacity, allocatable, want int64 }{{0, 0, 8}, {8, 0, 0}, {8, 3, 3}} {
		n := Node{Name: "n", ProviderID: "id"}
		n.Capacity, n.Allocatable = n.Capacity.With(name, c.capacity), n.Allocatable.With(name, c.allocatable)
		node := StateNode{Node: &n, Claim: &Claim{ProviderID: "id"}}
		node.Claim.Allocatable = node.Claim.Allocatable.With(name, 8)
		if got := node.Allocatable().Get(name); got != c.want {
			t.Errorf("of %d the node has %d for pods: %d counts, want %d", c.capacity, c.allocatable, got, c.want)
		}
	}
}

// Of pods that share a ResourceClaim a PodDisruptionBudget must let all go at once: those in their stead are ready when
// the last is gone.
func TestBudgetsOfPodsThatShareAClaim(t *testing.T) {
	term := AffinityTerm{Key: "kubernetes.io/hostname", Selector: &Selector{Requirements: []requirements.Requirement{requirements.Any(SharedClaim + "c")}}}
	first := Pod{Namespace: "default", Name: "a", NodeName: "n", Ready: true, Labels: map[string]string{"app": "a", SharedClaim + "c": "first"}}
	second := Pod{Namespace: "default", Name: "b", NodeName: "n", Ready: true, Labels: map[string]string{"app": "a"}, Affinity: []AffinityTerm{term}}
	other := Pod{Namespace: "default", Name: "d", NodeName: "n", Ready: true, Labels: map[string]string{"app": "a"}}
	static := second
	static.Owner = OwnerNode
	for _, c := range []struct {
		what    string
		pods    []*Pod
		allowed int32
		want    string
	}{
		{"both, one may go", []*Pod{&first, &second}, 1, "PodDisruptionBudget default/x lets 1 pods go now, and more of its pods share ResourceClaim c"},
		{"both may go", []*Pod{&first, &second}, 2, ""},
		{"one of them", []*Pod{&first}, 1, ""},
		{"one of them is not evicted", []*Pod{&first, &static}, 1, ""},
		{"they share nothing", []*Pod{&first, &other}, 1, ""},
	} {
		s := Snapshot{Now: noon, Budgets: []PodDisruptionBudget{{Namespace: "default", Name: "x", Selector: selects("app", "a"), DisruptionsAllowed: c.allowed}}}
		if word, why := s.Obstacles().Of(c.pods); (word == "") != (c.want == "") || !strings.HasPrefix(why, c.want) {
			t.Errorf("%s: %q %q", c.what, word, why)
		}
	}
}
