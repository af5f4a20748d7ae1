package binpack

import (
	"slices"

	"joiner.sh/pkg/scheduling/lowerbound"
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

// hostFill is how many pods of which price classes a host should take.
type hostFill = lowerbound.LimitedFill

// hostFills is what each host should take before anything else.
type hostFills struct {
	prices *shadowPrices // the fills count pods of classes of these
	byHost []hostFill
}

// hostFillSearch looks for a solution that begins with what whole pods on the nodes that are there do for the price.
type hostFillSearch struct {
	w      *problem
	raised lowerbound.RaisedBound
	offers []int         // by host: which offer of the raised problem it is, -1 for none
	parts  []newNodePart // classes of their own, after those that the problem has
	loose  []looseClass  // classes of their own, after the parts
}

// workFor is how much work goes into the search: as much as into improving the solution, as far as the limit of a plan
// leaves that. It is 0 where there is nothing to hope for, and where so many steps are asked for as usual, or fewer.
func (f *hostFillSearch) workFor(a *solution) int {
	w := f.w
	if n := w.s.Rules.PackingIterations; n != 0 && n <= defaultSearchSteps || w.alone == nil ||
		isNearBound(a, smallGap) {
		return 0
	}
	b := w.newBudget(a)
	work, classes := min(b.left, b.most-b.left, effort(w.s.Rules)*mostHostFillWork), len(w.worth.classes)
	if work < leastHostFillWork || work < raisePerPivot*classes*classes*classes {
		return 0
	}
	return work
}

// raisePrices finds prices that prove more than those of the problem, because nodes that are there hold whole pods and
// pods that need new nodes have their own prices. It begins with a plan and returns the work that this took.
func (f *hostFillSearch) raisePrices(plan *solution, work int) int {
	p, values := f.raisedProblem(plan)
	f.raised = lowerbound.RaiseBound(p, values, f.plannedNodes(plan), work)
	f.w.raised = f.raisedPrices()
	return f.raised.Work
}

// raiseFurther raises the prices further with another plan, where that proves more, and returns the work that this
// took.
func (f *hostFillSearch) raiseFurther(plan *solution, work int) int {
	bound, first, done := plan.lowerBound(), f.w.raised, f.raised.Work
	f.raised.RaiseFurther(f.plannedNodes(plan), work)
	if f.w.raised = f.raisedPrices(); plan.lowerBound() < bound {
		f.w.raised = first
	}
	return f.raised.Work - done
}

// raisedPrices are the prices that prove most so far.
func (f *hostFillSearch) raisedPrices() *shadowPrices {
	out := *f.w.worth
	classes := len(out.classes)
	out.prices, out.hostWorth = f.raised.ClassPrices, make([]float64, len(f.offers))
	out.prices.Value = f.raised.Value[:classes]
	for i, j := range f.offers {
		if out.hostWorth[i] = noPrice; j >= 0 {
			out.hostWorth[i] = f.raised.Worth[j]
		}
	}
	out.parts = slices.Clone(f.parts)
	for i := range out.parts {
		out.parts[i].price = f.raised.Value[classes+i]
	}
	return &out
}

// findFills finds what the nodes that are there hold in a fleet of about the least price, and in which domains the pods
// are then. It adds both to the strategy and returns the work that this took.
func (f *hostFillSearch) findFills(st *strategy, work int, buyFirst bool) int {
	given := f.raised.GiveFills(work, buyFirst)
	fills := &hostFills{prices: f.w.raised, byHost: make([]hostFill, len(f.offers))}
	st.hostFills, st.domainShares = fills, map[classDomain]int{}
	for i, j := range f.offers {
		if j >= 0 {
			fills.byHost[i] = given.Fills[j]
		}
	}
	first := len(f.w.worth.classes) + len(f.parts)
	for i, k := range f.loose {
		x := f.w.worth.members[k.class]
		for d, domain := range x.domains {
			st.domainShares[classDomain{k.class, x.key, domain}] = k.least + given.Chosen[first+i][d]
		}
	}
	return given.Work
}

// plannedNodes is what the nodes of the solution hold.
func (f *hostFillSearch) plannedNodes(plan *solution) []lowerbound.PlannedNode {
	var out []lowerbound.PlannedNode
	host := 0
	for _, b := range plan.bins {
		x := lowerbound.PlannedNode{Offer: -1}
		if b.offer == nil {
			x.Offer = f.offers[host]
			host++
		} else {
			x.Price = b.offer.Price
		}
		for _, l := range b.load {
			c := f.w.worth.classOf(l.view.class, l.pins)
			if i := slices.Index(x.Class, c); i >= 0 {
				x.Amount[i] += len(l.pods)
				continue
			}
			x.Class, x.Amount = append(x.Class, c), append(x.Amount, len(l.pods))
		}
		if len(x.Class) > 0 && (x.Offer >= 0) != (x.Price > 0) {
			out = append(out, x)
		}
	}
	splitPlan(out, f.parts, len(f.w.worth.classes))
	return out
}

// findCheaper is the solution improved, or another that costs less: nodes that are there first take what they hold in
// the fleet that raisePrices finds. What work is left in the end raises the bound with the plan that was found.
func (f *hostFillSearch) findCheaper(first *solution, st strategy, work int) *solution {
	share := func(part float64) int { return int(part * float64(work)) }
	best, left, improved := first, work, false
	if first.used.opened > len(f.w.nodes.hosts) { // most depends on new nodes
		a, searched := f.w.improve(first, st, share(searchShare))
		best, left, improved = a, work-searched, true
	}
	left -= f.raisePrices(best, share(firstRaising))
	for pass := range hostFillPasses {
		if pass > 1 && left <= 0 {
			break
		}
		if pass > 0 {
			left -= f.raiseFurther(best, min(left, share(furtherRaising)))
		}
		filled := st
		filled.repricesHosts = pass >= fleetPasses
		left -= f.findFills(&filled, share(givingShare), pass%2 == 1)
		a := f.packFilled(best, &filled, pass < fleetPasses)
		if a.waiting() > best.waiting() {
			break
		}
		search := max(0, min(left, share(searchShare)))
		a, searched := f.w.improve(a, filled, search)
		if a.placesMoreOrCostsLess(best) {
			best, improved = a, true
		}
		left -= min(search, searched)
	}
	if !improved {
		best, _ = f.w.improve(first, st, max(0, left))
	}
	if left > 0 && !isNearBound(best, smallGap) {
		f.raiseFurther(best, min(left, share(furtherRaising)))
	}
	return best
}

// packFilled packs what the fills of the strategy leave, all new nodes together if asked for, where that is about as
// much work as for the best solution so far and the plan is worth that.
func (f *hostFillSearch) packFilled(best *solution, st *strategy, together bool) *solution {
	if together && f.w.newBudget(best).allowsFleet(best) {
		st.guide = byLinearProgram
		return f.w.pack(*st)
	}
	return f.w.packByPrices(*st)
}

// placeHostFills puts pods of the batches on the hosts as far as the strategy says how many of which each should take.
func (pk *packing) placeHostFills(batches []*podBatch) {
	a := pk.a
	fills, byClass := a.strategy.hostFills, map[int32][]*podBatch{}
	if pk.filled == nil {
		pk.filled = make([]map[int32]int, len(fills.byHost))
	}
	for _, l := range batches {
		c := fills.prices.classOf(l.view.class, l.pins)
		byClass[c] = append(byClass[c], l)
	}
	for i, fill := range fills.byHost {
		for j, c := range fill.Class {
			left := fill.Amount[j] - pk.filled[i][c]
			for _, l := range byClass[c] {
				if n := pk.joinBinUpTo(l, a.bins[i], left); n > 0 {
					left -= n
					pk.noteFilled(i, c, n)
				}
			}
		}
	}
}

// noteFilled remembers how many pods of a price class a host took.
func (pk *packing) noteFilled(host int, class int32, pods int) {
	if pk.filled[host] == nil {
		pk.filled[host] = map[int32]int{}
	}
	pk.filled[host][class] += pods
}

// joinBinUpTo puts pods of the batch on the host, at most so many, and returns how many.
func (pk *packing) joinBinUpTo(l *podBatch, b *bin, most int) int {
	a := pk.a
	n := min(l.left, most, fitCount(l.view.class.need, b.room))
	if n <= 0 || l.whole {
		return 0
	}
	alt := l.admit.alternativeOn(b)
	if n = min(n, a.w.topology.maxPodsByHostRules(l.view, a.siteOf(b))); n <= 0 || alt < 0 {
		return 0
	}
	a.placePods(l, b, alt, n)
	return n
}
