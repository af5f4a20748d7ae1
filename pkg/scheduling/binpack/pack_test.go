package binpack

import (
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

func decide(w *scenario.World) plan.Plan { return PodsFrom(w.Snapshot, w.Market) }

func TestScenarios(t *testing.T) { scenario.Run(t, "testdata", decide) }

// Whatever the cluster looks like: the plan keeps the rules, does not depend on the order of its input, and is complete
// once its claims are on their way.
func TestRandomWorlds(t *testing.T) {
	t.Parallel()
	placed, bounded := 0, 0
	n := shortrun.Of(300, 30)
	for seed := range uint64(n) {
		w, err := scenario.Random(seed)
		if err != nil {
			t.Fatal(err)
		}
		p := decide(w)
		for _, fault := range w.Faults(p, decide) {
			t.Errorf("seed %d: %s", seed, fault)
		}
		if p.LowerBoundUSD > p.TotalPrice()*(1+1e-9) {
			t.Errorf("seed %d: the plan costs %v, less than its bound %v", seed, p.TotalPrice(), p.LowerBoundUSD)
		}
		if p.LowerBoundUSD > 0.5*p.TotalPrice() && p.TotalPrice() > 0 {
			bounded++
		}
		placed += len(p.Existing) + len(p.Launches)
	}
	if bounded < n/6 {
		t.Errorf("only %d plans have a bound of more than half their price", bounded)
	}
	if placed < n {
		t.Errorf("only %d placements in all worlds, which tests nothing", placed)
	}
}

// What a node costs beside its price makes fewer of them, and a narrow margin leaves launches fewer types.
func TestRulesOfPrice(t *testing.T) {
	t.Parallel()
	count := func(rules cluster.Settings) (nodes, types int) {
		for seed := range uint64(shortrun.Of(100, 25)) {
			w, err := scenario.Random(seed)
			if err != nil {
				t.Fatal(err)
			}
			w.Snapshot.Rules = rules
			for _, l := range decide(w).Launches {
				nodes++
				types += len(l.Types)
			}
		}
		return nodes, types
	}
	nodes, types := count(cluster.Settings{})
	fewer, _ := count(cluster.Settings{PerNodeOverheadUSD: 10})
	if fewer >= nodes {
		t.Errorf("%d nodes though each costs 10 USD per hour more, %d otherwise", fewer, nodes)
	}
	if _, narrow := count(cluster.Settings{InstanceTypePriceFactor: 1, MinSpotInstanceTypes: 1}); narrow >= types {
		t.Errorf("%d types with a narrow margin, %d otherwise", narrow, types)
	}
	if _, wide := count(cluster.Settings{InstanceTypePriceFactor: 3}); wide <= types {
		t.Errorf("%d types with a wide margin, %d otherwise", wide, types)
	}
}
