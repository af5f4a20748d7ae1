package search

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/prices"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

// Of few types, nodes that are chosen all together cost less than those that are chosen one after the other, and never
// more, for as many pods.
func TestFleetsOfFewTypes(t *testing.T) {
	t.Parallel()
	worlds := shortrun.Of(24, 6)
	cheaper, with, without, bound := 0, 0.0, 0.0, 0.0
	for seed := range uint64(worlds) {
		world, err := scenario.FromText(fewTypes(seed))
		if err != nil {
			t.Fatal(err)
		}
		p := solveWorld(world)
		problem := packing.NewProblem(world.Snapshot, world.Market)
		st := plainStrategy(problem, prices.NewPricing(problem))
		one := packByPrices(problem, st)
		st.guide = st.pricing.GuidePricesFor(one)
		improveByLocalSearch(one, st, searchLimit{steps: defaultSearchSteps})
		if len(p.Unplaced) > 0 || one.Waiting() > 0 {
			t.Fatalf("seed %d: %d pods have no place, and %d", seed, len(p.Unplaced), one.Waiting())
		}
		price := one.NewNodePrice()
		if p.TotalPrice() > price*(1+1e-9) {
			t.Errorf("seed %d: %v, one node after the other %v", seed, p.TotalPrice(), price)
		}
		if p.TotalPrice() < price*(1-1e-6) {
			cheaper++
		}
		with, without, bound = with+p.TotalPrice(), without+price, bound+p.LowerBoundUSD
	}
	t.Logf("%d of %d plans are cheaper; they cost %.3f of the bound, one node after the other %.3f", cheaper, worlds, with/bound, without/bound)
	if cheaper < worlds/2 || with > 1.025*bound || without < 1.02*with {
		t.Errorf("%d of %d plans are cheaper; they cost %.3f of the bound, one node after the other %.3f", cheaper, worlds, with/bound, without/bound)
	}
}

// fewTypes is a world of three types and a dozen services, half of them with pods that stay apart.
func fewTypes(seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 7))
	lines := []string{"type small cpu=2000 mem=4096 milliusd=34", "type large cpu=4000 mem=8192 milliusd=67", "type wide cpu=4000 mem=16384 milliusd=75", "pool default"}
	for i := range 12 {
		line := fmt.Sprintf("pods app%d n=%d cpu=%d mem=%d", i, 2+r.IntN(12), 100*(2+r.IntN(15)), 256*(1+r.IntN(11)))
		if i%2 == 0 {
			line += fmt.Sprintf("\napart host app=app%d", i)
		}
		lines = append(lines, line)
	}
	return lines
}
