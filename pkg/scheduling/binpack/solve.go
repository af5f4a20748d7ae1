package binpack

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/capacity"
)

// This file is the whole search, from the top: which strategies are tried, what each does again, and what is kept.

const (
	// fewNodes is how many new nodes make it worth while to try a second way of choosing them. Of many, the first is
	// better.
	fewNodes = 120
	// smallGap is how near to the lower bound, as a part of it, a plan is good enough.
	smallGap = 0.0005
	// ceilingGap is the same of a plan that was as near as that until less of one pool of spot capacity made it dearer.
	ceilingGap = 0.005
	// scarceNodeUSD is what a node costs beside its price, in USD per hour, where limits leave few of them: more than
	// any instance.
	scarceNodeUSD = 1000
)

// pricedStrategy is a strategy with the pricing that it packs by and that proves how good its solutions are.
type pricedStrategy struct {
	strategy
	pricing *pricing
}

// pricedBy is the strategy with another pricing.
func (st pricedStrategy) pricedBy(px *pricing) pricedStrategy {
	st.prices, st.pricing = px, px
	return st
}

// solve tries the strategies, improves the best outcome, and writes it down with reasons for what is left.
func solveProblem(w *problem) plan.Plan {
	best, st := placeMostPods(w)
	px := st.pricing
	fills := &hostFillSearch{w: w, prices: px}
	if work := fills.workFor(best); work > 0 {
		best, px = fills.findCheaper(best, st, work)
	} else {
		best, _ = improvePlan(w, best, st, math.MaxInt)
	}
	pw := &planWriter{a: best}
	out := plan.Plan{Skipped: w.catalog.Skipped, Oversized: w.catalog.OversizedDaemons(),
		Unplaced: w.classes.Unmodelled, Launches: pw.planLaunches()}
	out.LowerBoundUSD = px.lowerBound(best)
	out.Existing = pw.existingPlacements()
	out.Unplaced = append(out.Unplaced, explainer{a: best}.explainUnplaced()...)
	slices.SortFunc(out.Unplaced, func(a, b plan.Unplaced) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// placeMostPods is the solution that places most pods, for the least of several ways to do so before anything is packed
// anew, and the strategy to go on with.
func placeMostPods(w *problem) (*solution, pricedStrategy) {
	st := plainStrategy(w, newPricing(w))
	best := withinLimits(w, packByPrices(w, st), st)
	if best.isShort() && w.classes.DistinctPriorities() > 1 {
		st.byPriority = true
		best = withinLimits(w, packByPrices(w, st), st)
	}
	best = withLeftFirst(w, best, st)
	return withHostsByPrices(w, best, st)
}

// plainStrategy is what is tried first: all pods at once, by their prices.
func plainStrategy(w *problem, px *pricing) pricedStrategy {
	st := strategy{nodeCost: cmp.Or(w.s.Rules.PerNodeOverheadUSD, defaultNodeCost)}
	return pricedStrategy{strategy: st}.pricedBy(px)
}

// packByPrices packs everything by the prices of pods and, where the outcome leaves something to wish for, by the price
// of each pod's share of a node too. The second has to place as many pods for less.
func packByPrices(w *problem, st pricedStrategy) *solution {
	st.guide = byShadowPrice
	first := w.pack(st.strategy)
	if first.used.opened == 0 || first.used.opened > fewNodes || st.pricing.isNearBound(first, smallGap) {
		return first
	}
	st.guide = byCostShare
	if second := w.pack(st.strategy); second.placesMoreOrCostsLess(first) {
		return second
	}
	return first
}

// withHostsByPrices is the solution, or another that gives the room there is to the pods that would cost most elsewhere
// and places as many pods for less, with the strategy to go on with. There is no room to give where nothing was placed
// on hosts, and nothing to save where no node is new.
func withHostsByPrices(w *problem, best *solution, st pricedStrategy) (*solution, pricedStrategy) {
	if best.used.opened == 0 || w.s.Rules.PackingIterations == cluster.NoIterations ||
		!slices.ContainsFunc(best.bins, (*capacity.Bin).HasGuests) {
		return best, st
	}
	st = st.pricedBy(st.pricing.besideHosts(best))
	priced := st
	priced.hostsByPrices = true
	if a := packByPrices(w, priced); a.placesMoreOrCostsLess(best) {
		return a, priced
	}
	return best, st
}

// withinLimits is the solution, or another with as few nodes as can be, where limits leave pods that fewer and larger
// nodes have room for.
func withinLimits(w *problem, a *solution, st pricedStrategy) *solution {
	if !a.mayBeLimited() || a.used.opened == 0 || a.used.opened > fewNodes || !a.isShort() {
		return a
	}
	st.nodeCost = scarceNodeUSD
	if b := packByPrices(w, st); b.leavesFewer(a) {
		b.strategy.nodeCost = a.strategy.nodeCost
		return b
	}
	return a
}

// improve is the solution after all searches for something cheaper: other domains for pods that gather, less in one
// pool of spot capacity, and all new nodes chosen together or, where that is not cheaper, a few at a time packed anew.
// What remains of the work that the plan is worth then goes into the best of them, at most as much as is given. It
// returns the work that searches took.
func improvePlan(w *problem, a *solution, st pricedStrategy, most int) (*solution, int) {
	a = improveDomains(w, a, st)
	near := st.pricing.isNearBound(a, smallGap)
	if a = diversifySpot(w, a, st); near && st.pricing.isNearBound(a, ceilingGap) {
		return a, 0
	}
	b := newBudget(a, st.pricing)
	b.left = min(b.left, most)
	quick := cmp.Or(w.s.Rules.PackingIterations, defaultSearchSteps)
	if quick > 0 {
		tellSearched(a)
	}
	first := a
	a, other := packByLinearProgram(w, a, st, b)
	if a == first {
		b.used += improveByLocalSearch(a, st.pricing, searchLimit{steps: quick})
	}
	if w.s.Rules.PackingIterations != 0 || !b.allowsSearch() {
		return a, b.used
	}
	deep := searchLimit{steps: math.MaxInt, done: quick, work: b.left}
	if other != nil && a.used.opened <= veryFewNodes { // with few nodes it is mere chance which of them ends cheaper
		deep.work /= 2
		b.used += improveByLocalSearch(other, st.pricing, deep)
	}
	b.used += improveByLocalSearch(a, st.pricing, deep)
	if other != nil && other.totalCost() < a.totalCost()*(1-1e-9) {
		return other, b.used
	}
	return a, b.used
}

// packByLinearProgram chooses all new nodes together, where that takes no more than a part of the work that the plan is
// worth. It returns the cheaper of the two solutions, and the other where that places as many pods.
func packByLinearProgram(w *problem, best *solution, st pricedStrategy, b *workBudget) (cheaper, other *solution) {
	if best.strategy.guide == byLinearProgram || best.used.opened == 0 || st.pricing.worth == nil ||
		st.pricing.isNearBound(best, smallGap) || !b.allowsFleet(best, st.pricing) {
		return best, nil
	}
	st.guide, st.caps = byLinearProgram, best.strategy.caps
	next := diversifySpot(w, w.pack(st.strategy), st)
	if b.allowsSearch() {
		steps := cmp.Or(w.s.Rules.PackingIterations, defaultSearchSteps)
		b.used += improveByLocalSearch(next, st.pricing, searchLimit{steps: steps})
	}
	if next.waiting() != best.waiting() {
		return best, nil
	}
	if next.totalCost() < best.totalCost()*(1-1e-9) {
		return next, best
	}
	return best, next
}

// Defaults of the rules about price.
const (
	defaultNodeCost = 0.0002
)
