package budgets_test

import (
	"testing"
	"time"

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

// A drain counts for no empty node once pods have held it up for an hour, and again as soon as they may go.
func TestABlockedDrainCountsForNoEmptyNode(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		what          string
		drainedFor    time.Duration
		allowed       int32
		blocked, left int
	}{
		{"within the hour", time.Hour - time.Second, 0, 0, 0},
		{"after it", time.Hour, 0, 1, 1},
		{"its pod may go now", time.Hour, 1, 0, 0},
	} {
		s := cluster.Snapshot{Now: now, Nodes: []cluster.Node{{Name: "a", ProviderID: "a", Ready: true}},
			Claims: []cluster.Claim{{Name: "a", Pool: "gpu", ProviderID: "a", Deleting: now.Add(-c.drainedFor),
				Conditions: []cluster.Condition{{Type: v1.ConditionInitialized, Status: "True"}}}},
			Pods:    []cluster.Pod{{Namespace: "default", Name: "p", NodeName: "a", Phase: "Running", Ready: true}},
			Budgets: []cluster.PodDisruptionBudget{{Namespace: "default", Name: "b", Selector: &cluster.Selector{}, DisruptionsAllowed: c.allowed}}}
		pool := cluster.Pool{Name: "gpu", Disruption: cluster.Disruption{Budgets: []cluster.NodeBudget{{Every: true, Nodes: "1"}}}}
		if got, want := budgets.CountNodes(s)["gpu"], (budgets.PoolCount{Total: 1, Gone: 1, Blocked: c.blocked}); got != want {
			t.Errorf("%s: %+v, want %+v", c.what, got, want)
		}
		for reason, want := range map[v1.DisruptionReason]int{v1.DisruptionEmpty: c.left, v1.DisruptionDrifted: 0, v1.DisruptionUnderutilized: 0} {
			if got, err := budgets.RemainingDisruptions(s, pool, reason); got != want || err != nil {
				t.Errorf("%s: %d more may go for %s, want %d: %v", c.what, got, reason, want, err)
			}
		}
	}
}
