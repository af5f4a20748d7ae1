package search

import (
	"testing"

	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/prices"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

// The bound of one way to choose nodes holds for the other way too, whenever both place the same number of pods of each
// class.
func TestBoundHoldsForOtherPlans(t *testing.T) {
	t.Parallel()
	compared := 0
	n := shortrun.Of(1500, 150)
	for seed := range uint64(n) {
		world, err := scenario.Random(seed)
		if err != nil {
			t.Fatal(err)
		}
		p := packing.NewProblem(world.Snapshot, world.Market)
		first := p.Pack(plainStrategy(p, prices.NewPricing(p)).Strategy)
		p = packing.NewProblem(world.Snapshot, world.Market)
		shares := plainStrategy(p, prices.NewPricing(p))
		shares.Guide = packing.ByCostShare
		second := p.Pack(shares.Strategy)
		same := first.Used.Opened > 0
		for i := range first.Rest {
			same = same && len(first.Rest[i]) == len(second.Rest[i])
		}
		if !same {
			continue
		}
		compared++
		if b := first.Strategy.Prices.(*prices.Pricing).LowerBound(first); b > min(first.NewNodePrice(),
			second.NewNodePrice())*(1+1e-9) {
			t.Errorf("seed %d: bound %v, but plans cost %v and %v", seed, b, first.NewNodePrice(),
				second.NewNodePrice())
		}
	}
	if compared < n/3 {
		t.Errorf("only %d worlds compared", compared)
	}
}

// solveWorld is the plan for the world.
func solveWorld(w *scenario.World) plan.Plan {
	return SolveProblem(packing.NewProblem(w.Snapshot, w.Market))
}
