package search

import (
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/testing/manypods"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

// A search never makes a plan dearer nor leaves more pods without a home, and it makes some plans cheaper. That what it
// makes keeps every rule and does not depend on the order of its input is checked where all plans are.
func TestSearchOnlyEverSaves(t *testing.T) {
	t.Parallel()
	cheaper := 0
	n := shortrun.Of(600, 60)
	for seed := range uint64(n) {
		w, err := scenario.Random(seed)
		if err != nil {
			t.Fatal(err)
		}
		searched := solveWorld(w)
		w.Snapshot.Rules.PackingIterations = cluster.NoIterations
		first := solveWorld(w)
		cost := func(price float64, nodes int) float64 { return price + defaultNodeCost*float64(nodes) }
		before, after := cost(first.TotalPrice(), len(first.Launches)), cost(searched.TotalPrice(), len(searched.Launches))
		if len(searched.Unplaced) != len(first.Unplaced) || after > before*(1+1e-9) {
			t.Errorf("seed %d: %v and %d unplaced with a search, %v and %d without", seed, after, len(searched.Unplaced), before, len(first.Unplaced))
		}
		if after < before*(1-1e-6) {
			cheaper++
		}
	}
	if cheaper < n/30 {
		t.Errorf("only %d plans became cheaper", cheaper)
	}
}

// An offering that one pod fills to the last unit suits the pod: the search may open it.
func TestSearchLooksAtOfferingsThatOnePodFills(t *testing.T) {
	world := scenario.Scripted(t, "type m.l cpu=4000 mem=8192 milliusd=100", "type m.x cpu=9000 mem=18432 milliusd=300", "pool p",
		"pods full n=2 cpu=4000 mem=8192")
	p := packing.NewProblem(world.Snapshot, world.Market)
	solution, st := placeMostPods(p)
	s := &localSearch{a: solution, prices: st.pricing.Worth, use: solution.SpotUse()}
	s.readNodes()
	if len(s.tiers) != 1 || len(s.tiers[0].batches) != 1 {
		t.Fatalf("%d tiers, want one with one batch", len(s.tiers))
	}
	tier := s.tiers[0]
	filled := 0
	for _, i := range s.suitableOfferings(tier, tier.batches[0]) {
		if o := tier.offerings[i]; capacity.DominantShare(tier.batches[0].View.Class.Need, o.Room) == 1 {
			filled++
		}
	}
	if filled == 0 {
		t.Error("only offerings that leave room are looked at")
	}
}

// More steps than usual are taken as long as there are nodes that no step has tried.
func TestStatedStepsAreTaken(t *testing.T) {
	t.Parallel()
	s := manypods.Services(t, 1500)
	price := func(steps int) float64 {
		s.Rules.PackingIterations = steps
		return SolveProblem(packing.NewProblem(s, manypods.Sold(s))).TotalPrice()
	}
	if few, many := price(defaultSearchSteps), price(10*defaultSearchSteps); many > few*(1-0.0005) {
		t.Errorf("%.4f USD/h with many steps, %.4f with as many as usual", many, few)
	}
}

// A pool's MinValues that more types hold than it asks for cost nothing: the search takes its nodes apart as well, and
// makes none that too few types can hold.
func TestMinValuesThatAllNodesMeetCostNothing(t *testing.T) {
	t.Parallel()
	price := func(values int) float64 {
		s := manypods.Services(t, 1500)
		for i := range s.Pools {
			s.Pools[i].Requirements = s.Pools[i].Requirements.And(requirements.Requirement{Key: instancetypes.LabelType,
				Not: true, MinValues: values})
		}
		return SolveProblem(packing.NewProblem(s, manypods.Sold(s))).TotalPrice()
	}
	if none, some := price(0), price(2); some > none*1.001 {
		t.Errorf("%.4f USD/h where nodes name two types or more, %.4f where they may name one", some, none)
	}
}
