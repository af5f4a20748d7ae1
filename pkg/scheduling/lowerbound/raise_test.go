package lowerbound

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Two nodes with room for one and a half pods hold one each, so two of four pods need a new node; fractions would leave
// less than one.
func TestRaiseBoundCountsWholePodsOnNodes(t *testing.T) {
	p := CoverProblem{Classes: []PriceClass{{Need: []float64{1}, Count: 2, Group: -1},
		{Need: []float64{0.9}, Count: 2, Group: -1}}, Offers: []NodeOffer{
		{Price: 10, Room: []float64{2}, Holds: []int32{0, 1}},
		{Room: []float64{1.5}, Holds: []int32{0, 1}, Limit: 1}, {Room: []float64{1.5}, Holds: []int32{0, 1}, Limit: 1},
	}, Rounds: 60}
	quick := SolvePrices(p)
	if math.Abs(quick.Bound-4) > 0.01 {
		t.Errorf("fractions prove %.3f, want 4", quick.Bound)
	}
	got := RaiseBound(p, quick.Value[:2], nil, 100_000_000)
	if math.Abs(got.Bound-10) > 0.02 {
		t.Errorf("whole pods prove %.3f, want 10", got.Bound)
	}
	fills := got.GiveFills(25_000_000, false).Fills
	if len(fills[1].Class) != 1 || fills[1].Amount[0] != 1 || fills[2].Amount[0] != 1 {
		t.Errorf("fills are %v, want a pod on each node", fills)
	}
}

// With the nodes of a plan the fleet of the first round costs no more than the plan, whatever prices it begins with.
func TestRaiseBoundBeginsWithThePlan(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	p := CoverProblem{Rounds: 60}
	var all []int32
	for i := range int32(12) {
		all = append(all, i)
		p.Classes = append(p.Classes, PriceClass{Need: []float64{0.5 + 1.5*r.Float64(), 0.5 + 1.5*r.Float64()}, Count: 6,
			Group: -1})
	}
	p.Offers = append(p.Offers, NodeOffer{Price: 3, Room: []float64{6, 6}, Holds: all})
	for range 10 {
		p.Offers = append(p.Offers, NodeOffer{Room: []float64{1 + 3*r.Float64(), 1 + 3*r.Float64()}, Holds: all, Limit: 1})
	}
	plan, usd := firstFit(p)
	prices := make([]float64, len(p.Classes))
	if got := RaiseBound(p, prices, plan, 0); got.Least > usd*(1+unlike) {
		t.Errorf("with the plan the fleet costs %.3f, want at most the plan's %.3f", got.Least, usd)
	}
	if got := RaiseBound(p, prices, nil, 0); got.Least < usd*(1+unlike) {
		t.Errorf("without a plan the fleet costs %.3f after a round, the plan %.3f: this test says nothing", got.Least, usd)
	}
}

// Of two pods that spread over two domains one is in each, although nodes in the first have room for both.
func TestRaiseBoundKeepsPodsApartThatSpread(t *testing.T) {
	for each, want := range map[float64]float64{0: 0, 1: 10} {
		p := CoverProblem{Classes: []PriceClass{{Need: []float64{1}, Count: 1e-6, Group: -1},
			{Need: []float64{1}, Count: 1e-6, Group: -1},
			{Need: []float64{1}, Count: 2, Group: -1, AnyOf: []int32{0, 1}, Each: each}}, Offers: []NodeOffer{
			{Price: 10, Room: []float64{1}, Holds: []int32{0, 1}},
			{Room: []float64{1}, Holds: []int32{0}, Limit: 1}, {Room: []float64{1}, Holds: []int32{0}, Limit: 1},
		}, Rounds: 60}
		got := RaiseBound(p, []float64{10, 10, 0}, nil, 100_000_000)
		if math.Abs(got.Bound-want) > 0.02 {
			t.Errorf("at most %.0f in each, 0 for any number, prove %.3f; want %.0f", each, got.Bound, want)
		}
		if math.Abs(got.Least-want) > 0.02 {
			t.Errorf("at most %.0f in each, 0 for any number, cost %.3f; want %.0f", each, got.Least, want)
		}
		if fills := got.GiveFills(25_000_000, false).Fills; len(fills) != len(p.Offers) {
			t.Errorf("%d offers have a fill, want %d", len(fills), len(p.Offers))
		}
	}
}

// Offers with a limit together hold no more pods than there are, each no more than it has room for, and what they leave
// costs hardly more than the least, also when whole new nodes are bought first.
func TestRaiseBoundGivesWholeFills(t *testing.T) {
	for _, buyFirst := range []bool{false, true} {
		given, least := 0.0, 0.0
		for seed := range uint64(12) {
			p := oddHosts(rand.New(rand.NewPCG(seed, 3)))
			plan, _ := firstFit(p)
			got := RaiseBound(p, make([]float64, len(p.Classes)), plan, 20_000_000)
			rest := CoverProblem{Classes: slices.Clone(p.Classes), Offers: p.Offers[:1], Rounds: 60}
			for i, fill := range got.GiveFills(5_000_000, buyFirst).Fills {
				room := slices.Clone(p.Offers[i].Room)
				for j, k := range fill.Class {
					rest.Classes[k].Count -= float64(fill.Amount[j])
					for d, need := range p.Classes[k].Need {
						room[d] -= need * float64(fill.Amount[j])
					}
				}
				if slices.Min(room) < -1e-9 {
					t.Errorf("seed %d: offer %d has %.3f left", seed, i, room)
				}
			}
			for k, c := range rest.Classes {
				if c.Count < 0 {
					t.Errorf("seed %d: offers hold %.0f pods of class %d that there are not", seed, -c.Count, k)
				}
			}
			given, least = given+SolveWholePods(rest).Least, least+got.Least
		}
		t.Logf("what is left costs %.3f, at least %.3f", given, least)
		if given > 1.01*least {
			t.Errorf("what is left costs %.3f, at least %.3f; bought first: %v", given, least, buyFirst)
		}
	}
}

// Work that is used up ends an improvement and a round, and offers get their fills all the same.
func TestRaiseBoundTakesLittleMoreThanItsWork(t *testing.T) {
	p := manyOddHosts(rand.New(rand.NewPCG(1, 3)), 240, 600)
	plan, _ := firstFit(p)
	little := RaiseBound(p, make([]float64, len(p.Classes)), plan, 0)
	if most := 3 * leastImproving; little.Work > most {
		t.Errorf("no work was to be done, and %d was; want at most %d", little.Work, most)
	}
	given, classes := little.GiveFills(0, false), 0
	if given.Work > leastImproving {
		t.Errorf("no work was to be done on fills, and %d was; want at most %d", given.Work, leastImproving)
	}
	for _, fill := range given.Fills {
		classes += len(fill.Class)
	}
	if classes < 600 {
		t.Errorf("%d classes are on 600 nodes: few have a fill", classes)
	}
	if all := RaiseBound(p, make([]float64, len(p.Classes)), plan, 1<<30); all.Work < 20*leastImproving {
		t.Errorf("all there is to do takes %d: this test says nothing", all.Work)
	}
}

// Where small pods fit in more ways than are tried at first, more are tried until the bound is near the fleet.
func TestRaiseBoundTriesMoreWaysToFillNodes(t *testing.T) {
	for seed := range uint64(3) {
		p, r := manyOddHosts(rand.New(rand.NewPCG(seed, 5)), 30, 10), rand.New(rand.NewPCG(seed, 6))
		for k := range p.Classes {
			p.Classes[k].Need = []float64{0.1 + 0.9*r.Float64(), 0.1 + 0.9*r.Float64()}
		}
		plan, _ := firstFit(p)
		got := RaiseBound(p, make([]float64, len(p.Classes)), plan, 500_000_000)
		if got.Bound < 0.99*got.Least {
			t.Errorf("seed %d: the bound is %.3f, the fleet costs %.3f", seed, got.Bound, got.Least)
		}
	}
}

// oddHosts is a dozen classes, an offer and 160 odd rooms.
func oddHosts(r *rand.Rand) CoverProblem { return manyOddHosts(r, 12, 160) }

// manyOddHosts is so many classes, an offer and so many odd rooms.
func manyOddHosts(r *rand.Rand, classes int32, hosts int) CoverProblem {
	p := CoverProblem{Rounds: 60}
	var all []int32
	for i := range classes {
		all = append(all, i)
		p.Classes = append(p.Classes, PriceClass{Need: []float64{0.5 + 1.5*r.Float64(), 0.5 + 1.5*r.Float64()}, Count: 30,
			Group: -1})
	}
	p.Offers = append(p.Offers, NodeOffer{Price: 3, Room: []float64{6, 6}, Holds: all})
	for range hosts {
		p.Offers = append(p.Offers, NodeOffer{Room: []float64{1 + 3*r.Float64(), 1 + 3*r.Float64()}, Holds: all, Limit: 1})
	}
	return p
}

// firstFit is a plan that puts each pod on the first node with room, those of offers with a limit first, and its price.
func firstFit(p CoverProblem) (out []PlannedNode, usd float64) {
	var rooms [][]float64
	for i := range p.Offers[1:] {
		out, rooms = append(out, PlannedNode{Offer: i + 1}), append(rooms, slices.Clone(p.Offers[i+1].Room))
	}
	for k, c := range p.Classes {
		for range int(c.Count) {
			at := slices.IndexFunc(rooms, func(room []float64) bool { return c.Need[0] <= room[0] && c.Need[1] <= room[1] })
			if at < 0 {
				at, usd = len(out), usd+p.Offers[0].Price
				out = append(out, PlannedNode{Price: p.Offers[0].Price, Offer: -1})
				rooms = append(rooms, slices.Clone(p.Offers[0].Room))
			}
			for d, need := range c.Need {
				rooms[at][d] -= need
			}
			x := &out[at]
			if n := len(x.Class) - 1; n >= 0 && x.Class[n] == int32(k) {
				x.Amount[n]++
			} else {
				x.Class, x.Amount = append(x.Class, int32(k)), append(x.Amount, 1)
			}
		}
	}
	return out, usd
}

// No plan of small random clusters undercuts the bound, whatever the prices and the work that it starts with, and it is
// no less than what the prices prove that it starts with.
func TestRaiseBoundHoldsForEveryPlan(t *testing.T) {
	raised, further := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := randomHosts(r)
		quick := SolvePrices(p)
		work := []int{0, 1_000_000, 50_000_000}[seed%3]
		var plan []PlannedNode
		if seed%2 == 0 {
			plan = onePodEach(p)
		}
		got := RaiseBound(p, quick.Value[:len(p.Classes)], plan, work)
		first := got.Bound
		if got.RaiseFurther(onePodEach(p), work); got.Bound < first {
			t.Errorf("seed %d: with more work the bound is %.4f, less than %.4f", seed, got.Bound, first)
		}
		if got.Bound > first*(1+1e-3) {
			further++
		}
		cheapest := cheapestPlan(p)
		if got.Bound > cheapest*(1+1e-6)+1e-9 {
			t.Errorf("seed %d: the bound is %.4f, a plan costs %.4f", seed, got.Bound, cheapest)
		}
		if got.Bound < quick.Bound*(1-1e-3)-1e-6 {
			t.Errorf("seed %d: the bound is %.4f, less than the %.4f of fractions", seed, got.Bound, quick.Bound)
		}
		if got.Bound > quick.Bound*1.01 {
			raised++
		}
		sum := 0.0
		for i, v := range got.Value {
			sum += p.Classes[i].Count * v
		}
		for i, o := range p.Offers {
			sum -= o.Limit * got.Worth[i]
		}
		if math.Abs(sum-got.Bound) > 1e-6*(1+math.Abs(sum)) {
			t.Errorf("seed %d: value less worth is %.6f, the bound %.6f", seed, sum, got.Bound)
		}
	}
	if raised < 100 || further < 20 {
		t.Errorf("%d of 300 bounds are raised, %d further with another plan", raised, further)
	}
}

// randomHosts is two classes of some pods, one or two offers and up to three nodes that are there.
func randomHosts(r *rand.Rand) CoverProblem {
	p := CoverProblem{Rounds: 60}
	for range 2 {
		p.Classes = append(p.Classes, PriceClass{Need: []float64{1 + 3*r.Float64(), 1 + 3*r.Float64()},
			Count: float64(1 + r.IntN(5)), Group: -1})
	}
	holds := []int32{0, 1}
	p.Offers = append(p.Offers, NodeOffer{Price: 1 + r.Float64(), Room: []float64{4.1, 4.1}, Holds: holds})
	if r.IntN(2) == 0 {
		p.Offers = append(p.Offers, NodeOffer{Price: 2 + r.Float64(), Room: []float64{8, 9}, Holds: holds})
	}
	for range 1 + r.IntN(3) {
		p.Offers = append(p.Offers, NodeOffer{Room: []float64{6 * r.Float64(), 6 * r.Float64()}, Holds: holds,
			Limit: 1})
	}
	return p
}

// onePodEach is a plan in which each pod has a new node of the first offer.
func onePodEach(p CoverProblem) (out []PlannedNode) {
	for i, c := range p.Classes {
		for range int(c.Count) {
			out = append(out, PlannedNode{Price: p.Offers[0].Price, Offer: -1,
				LimitedFill: LimitedFill{[]int32{int32(i)}, []int{1}}})
		}
	}
	return out
}

// cheapestPlan is what the cheapest plan of whole pods costs, found by trying all.
func cheapestPlan(p CoverProblem) float64 {
	t := planTrial{p, map[[2]int]float64{{0, 0}: 0}}
	return t.place(0, int(p.Classes[0].Count), int(p.Classes[1].Count))
}

// planTrial tries all plans for pods of two classes.
type planTrial struct {
	CoverProblem
	bought map[[2]int]float64 // by pods of both classes: what new nodes for them cost
}

func (t planTrial) fits(o NodeOffer, a, b int) bool {
	for d, room := range o.Room {
		if float64(a)*t.Classes[0].Need[d]+float64(b)*t.Classes[1].Need[d] > room {
			return false
		}
	}
	return true
}

// place tries all that the offers with a limit, from one on, could hold, and buys nodes for the rest.
func (t planTrial) place(offer, a, b int) float64 {
	if offer == len(t.Offers) {
		return t.buy(a, b)
	}
	best := t.place(offer+1, a, b)
	for x := 0; x <= a && t.Offers[offer].Limit > 0; x++ {
		for y := 0; y <= b && t.fits(t.Offers[offer], x, y); y++ {
			best = min(best, t.place(offer+1, a-x, b-y))
		}
	}
	return best
}

func (t planTrial) buy(a, b int) float64 {
	if usd, ok := t.bought[[2]int{a, b}]; ok {
		return usd
	}
	best := math.Inf(1)
	for _, o := range t.Offers {
		for i := 1; i < (a+1)*(b+1) && o.Limit == 0; i++ {
			if x, y := i/(b+1), i%(b+1); t.fits(o, x, y) {
				best = min(best, o.Price+t.buy(a-x, b-y))
			}
		}
	}
	t.bought[[2]int{a, b}] = best
	return best
}
