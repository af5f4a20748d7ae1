package search

import (
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/lowerbound"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/prices"
)

const (
	// raisePerPivot is how much work it takes to raise prices, by the third power of kinds of pods.
	raisePerPivot = 40
	// leastHostFillWork is how much work another solution begins with, mostHostFillWork how much goes into it at most:
	// as much again goes into what it does not count, packing above all.
	leastHostFillWork, mostHostFillWork = 300 * millisecond, 1000 * millisecond
	// firstRaising and furtherRaising are the parts of the work that go into raising prices, from the first plan and
	// from each that is cheaper.
	firstRaising, furtherRaising = 0.5, 0.2
	// givingShare and searchShare are the parts that go into what nodes that are there hold, and into improving what
	// begins with that, at most.
	givingShare, searchShare = 0.2, 0.25
	// hostFillPasses is how often a solution begins with what nodes that are there hold: twice, because a better plan
	// is known then, and more often while work is left.
	hostFillPasses = 4
	// fleetPasses is in how many of them all new nodes are chosen together at once. Later fills are often the same, and
	// a search that begins with nodes chosen one by one, and hosts filled by other prices, ends elsewhere.
	fleetPasses = 2
)

// hostFillSearch looks for a solution that begins with what whole pods on the nodes that are there do for the price.
type hostFillSearch struct {
	w      *packing.Problem
	prices *prices.Pricing // before any were raised
	raised lowerbound.RaisedBound
	offers []int                // by host: which offer of the raised problem it is, -1 for none
	parts  []prices.NewNodePart // classes of their own, after those that the problem has
	loose  []prices.LooseClass  // classes of their own, after the parts
}

// workFor is how much work goes into the search: as much as into improving the solution, as far as the limit of a plan
// leaves that. It is 0 where there is nothing to hope for, and where so many steps are asked for as usual, or fewer.
func (f *hostFillSearch) workFor(a *packing.Solution) int {
	w := f.w
	if n := w.S.Rules.PackingIterations; n != 0 && n <= defaultSearchSteps || f.prices.Alone == nil ||
		f.prices.IsNearBound(a, smallGap) {
		return 0
	}
	b := newBudget(a, f.prices)
	work, classes := min(b.left, b.most-b.left, effort(w.S.Rules)*mostHostFillWork), len(f.prices.Worth.Classes)
	if work < leastHostFillWork || work < raisePerPivot*classes*classes*classes {
		return 0
	}
	return work
}

// raisePrices finds prices that prove more than those there are, because nodes that are there hold whole pods and pods
// that need new nodes have their own prices. It begins with a plan and returns the work that this took.
func (f *hostFillSearch) raisePrices(plan *packing.Solution, work int) (*prices.Pricing, int) {
	p, values := f.raisedProblem(plan)
	f.raised = lowerbound.RaiseBound(p, values, f.plannedNodes(plan), work)
	return f.prices.WithRaised(f.raisedPrices()), f.raised.Work
}

// raiseFurther raises the prices further with another plan, where that proves more, and returns the work that this
// took.
func (f *hostFillSearch) raiseFurther(px *prices.Pricing, plan *packing.Solution, work int) (*prices.Pricing, int) {
	bound, done := px.LowerBound(plan), f.raised.Work
	f.raised.RaiseFurther(f.plannedNodes(plan), work)
	if next := px.WithRaised(f.raisedPrices()); next.LowerBound(plan) >= bound {
		px = next
	}
	return px, f.raised.Work - done
}

// raisedPrices are the prices that prove most so far.
func (f *hostFillSearch) raisedPrices() *prices.ShadowPrices {
	out := *f.prices.Worth
	classes := len(out.Classes)
	out.Prices, out.HostWorth = f.raised.ClassPrices, make([]float64, len(f.offers))
	out.Prices.Value = f.raised.Value[:classes]
	for i, j := range f.offers {
		if out.HostWorth[i] = capacity.NoPrice; j >= 0 {
			out.HostWorth[i] = f.raised.Worth[j]
		}
	}
	out.Parts = slices.Clone(f.parts)
	for i := range out.Parts {
		out.Parts[i].Price = f.raised.Value[classes+i]
	}
	return &out
}

// findFills finds what the nodes that are there hold in a fleet of about the least price, and in which domains the pods
// are then. It adds both to the strategy and returns the work that this took.
func (f *hostFillSearch) findFills(st *pricedStrategy, work int, buyFirst bool) int {
	given := f.raised.GiveFills(work, buyFirst)
	fills := &packing.HostFills{Prices: st.pricing.Raised, ByHost: make([]packing.HostFill, len(f.offers))}
	st.HostFills, st.DomainShares = fills, map[packing.ClassDomain]int{}
	for i, j := range f.offers {
		if j >= 0 {
			fills.ByHost[i] = given.Fills[j]
		}
	}
	first := len(f.prices.Worth.Classes) + len(f.parts)
	for i, k := range f.loose {
		x := f.prices.Worth.Members[k.Class]
		for d, domain := range x.Domains {
			st.DomainShares[packing.ClassDomain{Class: k.Class, Key: x.Key,
				Domain: domain}] = k.Least + given.Chosen[first+i][d]
		}
	}
	return given.Work
}

// plannedNodes is what the nodes of the solution hold.
func (f *hostFillSearch) plannedNodes(plan *packing.Solution) []lowerbound.PlannedNode {
	var out []lowerbound.PlannedNode
	host := 0
	for _, b := range plan.Bins {
		x := lowerbound.PlannedNode{Offer: -1}
		if b.Offer == nil {
			x.Offer = f.offers[host]
			host++
		} else {
			x.Price = b.Offer.Price
		}
		for _, l := range b.Load {
			c := f.prices.Worth.ClassOf(l.Pod.Class, l.Pins)
			if i := slices.Index(x.Class, c); i >= 0 {
				x.Amount[i] += len(l.Pods)
				continue
			}
			x.Class, x.Amount = append(x.Class, c), append(x.Amount, len(l.Pods))
		}
		if len(x.Class) > 0 && (x.Offer >= 0) != (x.Price > 0) {
			out = append(out, x)
		}
	}
	prices.SplitPlan(out, f.parts, len(f.prices.Worth.Classes))
	return out
}

// findCheaper is the solution improved, or another that costs less: nodes that are there first take what they hold in
// the fleet that raisePrices finds. What work is left in the end raises the bound with the plan that was found. The
// pricing that it returns proves most.
func (f *hostFillSearch) findCheaper(first *packing.Solution, st pricedStrategy, work int) (*packing.Solution,
	*prices.Pricing) {
	share := func(part float64) int { return int(part * float64(work)) }
	best, left, improved := first, work, false
	if first.Used.Opened > len(f.w.Nodes.Hosts) { // most depends on new nodes
		a, searched := improvePlan(f.w, first, st, share(searchShare))
		best, left, improved = a, work-searched, true
	}
	px, spent := f.raisePrices(best, share(firstRaising))
	left -= spent
	for pass := range hostFillPasses {
		if pass > 1 && left <= 0 {
			break
		}
		if pass > 0 {
			px, spent = f.raiseFurther(px, best, min(left, share(furtherRaising)))
			left -= spent
		}
		filled := st.pricedBy(px)
		filled.RepricesHosts = pass >= fleetPasses
		left -= f.findFills(&filled, share(givingShare), pass%2 == 1)
		a := f.packFilled(best, &filled, pass < fleetPasses)
		if a.Waiting() > best.Waiting() {
			break
		}
		search := max(0, min(left, share(searchShare)))
		a, searched := improvePlan(f.w, a, filled, search)
		if a.PlacesMoreOrCostsLess(best) {
			best, improved = a, true
		}
		left -= min(search, searched)
	}
	if st = st.pricedBy(px); !improved {
		best, _ = improvePlan(f.w, first, st, max(0, left))
	}
	if left > 0 && !px.IsNearBound(best, smallGap) {
		px, _ = f.raiseFurther(px, best, min(left, share(furtherRaising)))
	}
	return best, px
}

// packFilled packs what the fills of the strategy leave, all new nodes together if asked for, where that is about as
// much work as for the best solution so far and the plan is worth that.
func (f *hostFillSearch) packFilled(best *packing.Solution, st *pricedStrategy, together bool) *packing.Solution {
	if together && newBudget(best, st.pricing).allowsFleet(best, st.pricing) {
		st.Guide = packing.ByLinearProgram
		return f.w.Pack(st.Strategy)
	}
	return packByPrices(f.w, *st)
}
