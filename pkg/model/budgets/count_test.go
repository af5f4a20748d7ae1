package budgets_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/model/budgets"
	"joiner/pkg/model/cluster"
)

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
