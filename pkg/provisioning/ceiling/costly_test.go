package ceiling_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/provisioning/ceiling"
)

// A namespace whose new nodes cost more than all that runs, and 10 USD an hour, is named; one that doubles a small
// cluster, or shares a node, is not.
func TestCostlyNamespaces(t *testing.T) {
	offering := func(usd float64, pool string, pods ...string) plan.Launch {
		return plan.Launch{Pool: pool, Pods: pods, Choice: instancetypes.Offering{Price: usd}}
	}
	launches := []plan.Launch{offering(9, "large", "evil/a", "evil/b"), offering(4, "general", "evil/c", "shop/a", "shop/b", "shop/c"), offering(9, "general", "blog/a")}
	want := []ceiling.CostlyNamespace{{Namespace: "evil", Nodes: 2, USD: 10, Pools: []string{"general", "large"}}}
	if d := cmp.Diff(want, ceiling.FindCostly(cluster.Snapshot{}, plan.Plan{Launches: launches})); d != "" {
		t.Errorf("costly (-want +got):\n%s", d)
	}
	runs := cluster.Snapshot{Catalog: instancetypes.Catalog{Types: []instancetypes.Facts{{Name: "m5.large", OnDemandUSD: 11}}},
		Claims: []cluster.Claim{{Labels: map[string]string{"node.kubernetes.io/instance-type": "m5.large", "karpenter.sh/capacity-type": "on-demand", "topology.kubernetes.io/zone": "a"}}}}
	if got := ceiling.FindCostly(runs, plan.Plan{Launches: launches}); len(got) > 0 {
		t.Errorf("beside nodes of 11 USD/h: %+v", got)
	}
}
