package budgets_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
)

// Stopped capacity counts for no budget: not while its node warms and is initialized, nor while a node that stops is
// not ready. Once it is started it is a node as others are.
func TestStoppedCapacityCountsForNoBudget(t *testing.T) {
	for status, want := range map[string]map[string]budgets.PoolCount{"": {"web": {Total: 1}}, "Unknown": {"web": {Total: 1}}, "True": {"web": {Total: 1}},
		"False": {"web": {Total: 2, Gone: 1}}} {
		s := cluster.Snapshot{Nodes: []cluster.Node{{Name: "a", ProviderID: "a", Ready: true}, {Name: "b", ProviderID: "b"}}}
		for _, id := range []string{"a", "b"} {
			s.Claims = append(s.Claims, cluster.Claim{Name: id, Pool: "web", ProviderID: id, Conditions: []cluster.Condition{{Type: v1.ConditionInitialized, Status: "True"}}})
		}
		kept := &s.Claims[1]
		kept.Annotations = map[string]string{v1.AnnotationStoppedCapacity: "true"}
		if status != "" {
			kept.Conditions = append(kept.Conditions, cluster.Condition{Type: v1.ConditionStopped, Status: status})
		}
		if diff := cmp.Diff(want, budgets.CountNodes(s)); diff != "" {
			t.Errorf("condition Stopped %q: %s", status, diff)
		}
	}
}

// Nodes count for their pool once they are initialized; those that nobody made for a pool count for none.
func TestNodesOfAPool(t *testing.T) {
	claim := func(name, pool string) cluster.Claim {
		return cluster.Claim{Name: name, Pool: pool, ProviderID: name,
			Conditions: []cluster.Condition{{Type: v1.ConditionInitialized, Status: "True"}}}
	}
	node := func(id string, ready bool) cluster.Node { return cluster.Node{Name: id, ProviderID: id, Ready: ready} }
	s := cluster.Snapshot{Claims: []cluster.Claim{claim("a", "web"), claim("b", "web"), claim("c", "")},
		Nodes: []cluster.Node{node("a", true), node("b", false), node("c", true), node("d", true)}}
	want := map[string]budgets.PoolCount{"web": {Total: 2, Gone: 1}}
	if diff := cmp.Diff(want, budgets.CountNodes(s)); diff != "" {
		t.Error(diff)
	}
}
