package search_test

import (
	"testing"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/testing/manypods"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

// spotShares is the part of the launches' spot capacity that is in the fullest pool of capacity, and the number of spot
// launches.
func spotShares(p plan.Plan, types []instancetypes.Type) (most float64, nodes int) {
	cpu := map[string]int64{}
	for _, t := range types {
		cpu[t.Name] = t.Capacity.CPU
	}
	byPool, total := map[instancetypes.OfferingKey]int64{}, int64(0)
	for _, l := range p.Launches {
		if l.Choice.CapacityType == instancetypes.Spot {
			byPool[l.Choice.OfferingKey] += cpu[l.Choice.Type]
			total += cpu[l.Choice.Type]
			nodes++
		}
	}
	for _, n := range byPool {
		most = max(most, float64(n)/float64(total))
	}
	return most, nodes
}

// A fleet for pods that are all alike is not of one type in one zone, costs little more for that, and its claims stay
// as flexible as spot wants them.
func TestSpotIsNotAllInOnePlace(t *testing.T) {
	s := manypods.Identical(t, 2000)
	types := instancetypes.ResolveTypes(s.Catalog, s.Classes[0], nil, s.Now)
	sells := func(string) []instancetypes.Type { return types }
	s.Rules.MaxSpotPoolFraction = 1
	free := solve(s, sells)
	if share, _ := spotShares(free, types); share < 0.9 {
		t.Errorf("without a limit the fullest place has %.2f, which tests nothing", share)
	}
	for _, c := range []struct{ limit, dearer float64 }{{0.8, 1.01}, {0.5, 1.02}, {0.2, 1.06}} {
		s.Rules.MaxSpotPoolFraction = c.limit
		p := solve(s, sells)
		if share, _ := spotShares(p, types); share > c.limit {
			t.Errorf("limit %v: the fullest place has %.3f", c.limit, share)
		}
		if p.TotalPrice() > free.TotalPrice()*c.dearer || len(p.Unplaced) > 0 {
			t.Errorf("limit %v: %.2f USD/h, %.2f without; %d unplaced", c.limit, p.TotalPrice(), free.TotalPrice(), len(p.Unplaced))
		}
		for _, l := range p.Launches {
			zones, _ := l.Requirements.Get(instancetypes.LabelZone)
			if len(l.Types) < 15 || len(zones.Values) < 2 {
				t.Errorf("limit %v: %s names %d types in %v", c.limit, l, len(l.Types), zones.Values)
			}
		}
	}
}

// Whatever the cluster looks like, the limit never costs a pod its node or spot capacity.
func TestSpotShareIsSoft(t *testing.T) {
	t.Parallel()
	bitten := 0
	n := shortrun.Of(150, 30)
	for seed := range uint64(n) {
		w, err := scenario.Random(seed)
		if err != nil {
			t.Fatal(err)
		}
		w.Snapshot.Rules.MaxSpotPoolFraction = 1
		free := decide(w)
		w.Snapshot.Rules.MaxSpotPoolFraction = 0.3
		p := decide(w)
		for _, fault := range w.Check(p) {
			t.Errorf("seed %d: %s", seed, fault)
		}
		if len(p.Unplaced) > len(free.Unplaced) {
			t.Errorf("seed %d: %d pods unplaced, %d without the limit", seed, len(p.Unplaced), len(free.Unplaced))
		}
		before, nodes := spotShares(free, w.Types)
		if after, _ := spotShares(p, w.Types); nodes > 4 && after < before {
			bitten++
		}
	}
	if bitten < n/30 {
		t.Errorf("the limit mattered in %d worlds only", bitten)
	}
}
