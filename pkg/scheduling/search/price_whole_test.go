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

// Beside nodes with odd rooms, prices that reckon with whole pods prove more, and what nodes hold in their fleet makes
// plans cheaper and never dearer.
func TestWholePodsOnNodesThatAreThere(t *testing.T) {
	t.Parallel()
	worlds := shortrun.Of(24, 6)
	cheaper, proved, before, after := 0, 0, 0.0, 0.0
	for seed := range uint64(worlds) {
		world, fills, priced, st := findFillsOf(t, oddRooms(seed), 1000*millisecond)
		w := fills.w
		filled := packByPrices(w, st)
		if priced.PlacesMoreOrCostsLess(filled) {
			filled = priced
		}
		if filled.Waiting() > 0 || filled.TotalCost() > priced.TotalCost()*(1+1e-9) {
			t.Errorf("seed %d: %d pods have no place, %.4f USD/h, %.4f without fills", seed, filled.Waiting(),
				filled.NewNodePrice(), priced.NewNodePrice())
		}
		if filled.TotalCost() < priced.TotalCost()*(1-1e-6) {
			cheaper++
		}
		for i, b := range filled.Bins {
			checkBin(t, seed, w, i, b)
		}
		bound := st.pricing.LowerBound(filled)
		if bound > st.pricing.WithRaised(nil).LowerBound(filled)*(1+1e-3) {
			proved++
		}
		if p := solveWorld(world); bound > p.TotalPrice()*(1+1e-9) {
			t.Errorf("seed %d: %.4f USD/h is proven, a plan costs %.4f", seed, bound, p.TotalPrice())
		}
		before, after = before+priced.NewNodePrice(), after+filled.NewNodePrice()
	}
	t.Logf("%d of %d plans are cheaper, %d bounds higher: %.4f USD/h, %.4f before", cheaper, worlds, proved, after, before)
	if cheaper < worlds/4 || proved < worlds/4 || after > 0.99*before {
		t.Errorf("%d of %d plans are cheaper, %d bounds higher: %.4f USD/h, %.4f before", cheaper, worlds, proved, after,
			before)
	}
}

// Pods that spread are in the domains in which nodes that are there have room for them: these take nearly all that the
// fractional fleet gives them.
func TestNodesTakeThePodsThatSpread(t *testing.T) {
	t.Parallel()
	given, taken := 0, 0
	for seed := range uint64(8) {
		_, fills, first, st := findFillsOf(t, fewOfEach(seed), 400*millisecond)
		w, a := fills.w, fills.packFilled(first, &st, true)
		for i, fill := range st.HostFills.ByHost {
			held := map[int32]int{}
			for _, l := range a.Bins[i].Load {
				held[st.pricing.Worth.ClassOf(l.Pod.Class, l.Pins)] += len(l.Pods)
			}
			for j, k := range fill.Class {
				given, taken = given+fill.Amount[j], taken+min(fill.Amount[j], held[k])
			}
			checkBin(t, seed, w, i, a.Bins[i])
		}
	}
	t.Logf("nodes take %d of %d pods", taken, given)
	if given < 400 || float64(taken) < 0.99*float64(given) {
		t.Errorf("nodes take %d of %d pods", taken, given)
	}
}

// findFillsOf finds what nodes of the world should hold, by so much work, with the plan that it begins with.
func findFillsOf(t *testing.T, script []string, work int) (*scenario.World, *hostFillSearch, *packing.Solution, pricedStrategy) {
	t.Helper()
	world, err := scenario.FromText(script)
	if err != nil {
		t.Fatal(err)
	}
	w := packing.NewProblem(world.Snapshot, world.Market)
	plain := plainStrategy(w, prices.NewPricing(w))
	first, st := withHostsByPrices(w, packByPrices(w, plain), plain)
	fills := &hostFillSearch{w: w, prices: st.pricing}
	px, _ := fills.raisePrices(first, work/4*3)
	st = st.pricedBy(px)
	fills.findFills(&st, work/4, false)
	return world, fills, first, st
}

// fewOfEach is a world of services of two to five pods that spread over three zones, beside nodes with odd rooms.
func fewOfEach(seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 12))
	lines := []string{"type small cpu=3100 mem=6500 milliusd=50", "type large cpu=7300 mem=15000 milliusd=100",
		"pool default"}
	for i := range 30 {
		lines = append(lines, fmt.Sprintf("node n%02d type=%s zone=%s pool=default", i,
			[]string{"small", "large"}[r.IntN(2)], []string{"a", "b", "c"}[r.IntN(3)]))
	}
	for i := range 30 {
		lines = append(lines, fmt.Sprintf("pods app%d n=%d cpu=%d mem=%d\nspread zone skew=1 app=app%d", i, 2+r.IntN(4),
			100*(5+r.IntN(24)), 256*(2+r.IntN(18)), i))
	}
	return lines
}

// Who asks for more steps than usual gets plans that use the nodes that are there as well as others do.
func TestMoreStepsKeepWholePods(t *testing.T) {
	t.Parallel()
	usual, more := 0.0, 0.0
	for seed := range uint64(32) {
		world, err := scenario.FromText(oddRooms(seed))
		if err != nil {
			t.Fatal(err)
		}
		usual += solveWorld(world).TotalPrice()
		world.Snapshot.Rules.PackingIterations = 10 * defaultSearchSteps
		more += solveWorld(world).TotalPrice()
	}
	if more > usual*1.001 {
		t.Errorf("%.4f USD/h with ten times the steps, %.4f as usual", more, usual)
	}
}

// oddRooms is a world of a dozen services beside forty nodes, the rooms of which no pods fill.
func oddRooms(seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 11))
	lines := []string{"type small cpu=3100 mem=6500 milliusd=50", "type large cpu=7300 mem=15000 milliusd=100",
		"type tall cpu=5200 mem=21000 milliusd=95", "pool default"}
	for i := range 40 {
		lines = append(lines, fmt.Sprintf("node n%02d type=%s zone=a pool=default", i,
			[]string{"small", "large", "tall"}[r.IntN(3)]))
	}
	for i := range 12 {
		line := fmt.Sprintf("pods app%d n=%d cpu=%d mem=%d", i, 10+r.IntN(12), 100*(5+r.IntN(24)), 256*(2+r.IntN(18)))
		if i%4 == 0 {
			line += fmt.Sprintf("\napart host app=app%d", i)
		}
		lines = append(lines, line)
	}
	return lines
}
