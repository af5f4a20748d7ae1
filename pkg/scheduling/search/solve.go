package search

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/prices"
	"joiner.sh/pkg/scheduling/report"
)

// This file is the whole search, from the top: which strategies are tried, what each does again, and what is kept.

// SolveProblem tries the strategies, improves the best outcome, and writes it down with reasons for what is left.
func SolveProblem(p *packing.Problem) plan.Plan {
	best, st := placeMostPods(p)
	best = improvePlan(p, best, st)
	out := writePlan(best)
	out.LowerBoundUSD = st.pricing.LowerBound(best)
	out.Unplaced = append(out.Unplaced, report.Explainer{Solution: best}.ExplainUnplaced()...)
	slices.SortFunc(out.Unplaced, func(a, b plan.Unplaced) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// PlacePods is SolveProblem without reasons and the lower bound.
func PlacePods(p *packing.Problem) plan.Plan {
	best, st := placeMostPods(p)
	best = improvePlan(p, best, st)
	out := writePlan(best)
	for _, rest := range best.Rest {
		for _, pod := range rest {
			out.Unplaced = append(out.Unplaced, plan.Unplaced{Pod: pod})
		}
	}
	return out
}

// writePlan returns what the solution does, without the pods that it leaves.
func writePlan(best *packing.Solution) plan.Plan {
	p, pw := best.W, &report.PlanWriter{Solution: best}
	return plan.Plan{Skipped: p.Catalog.Skipped, Oversized: p.Catalog.OversizedDaemons(), Unread: p.Topology.Unread,
		Unplaced: p.Classes.Unmodelled, Launches: pw.PlanLaunches(), Existing: pw.ExistingPlacements()}
}

// placeMostPods is the solution that places most pods, for the least of several ways to do so before anything is packed
// anew, and the strategy to go on with.
func placeMostPods(p *packing.Problem) (*packing.Solution, pricedStrategy) {
	st := plainStrategy(p, prices.NewPricing(p))
	best := withinLimits(p, packByPrices(p, st), st)
	if best.IsShort() && p.Classes.DistinctPriorities() > 1 {
		st.ByPriority = true
		best = withinLimits(p, packByPrices(p, st), st)
	}
	best = withLeftFirst(p, best, st)
	return withHostsByPrices(p, best, st)
}

// withHostsByPrices is the solution, or another that gives the room there is to the pods that would cost most elsewhere
// and places as many pods for less, with the strategy to go on with. There is no room to give where nothing was placed
// on hosts, and nothing to save where no node is new.
func withHostsByPrices(p *packing.Problem, best *packing.Solution, st pricedStrategy) (*packing.Solution,
	pricedStrategy) {
	if best.Used.Opened == 0 || p.S.Rules.PackingIterations == cluster.NoIterations ||
		!slices.ContainsFunc(best.Bins, (*capacity.Bin).HasGuests) {
		return best, st
	}
	st = st.pricedBy(st.pricing.BesideHosts(best))
	priced := st
	priced.HostsByPrices = true
	if s := packByPrices(p, priced); s.PlacesMoreOrCostsLess(best) {
		return s, priced
	}
	return best, st
}

// improvePlan is the solution after all searches for something cheaper: less in one pool of spot capacity, and all new
// nodes chosen together or, where that is not cheaper, a few at a time packed anew. What remains of the work that the
// plan is worth then goes into the best of them.
func improvePlan(p *packing.Problem, s *packing.Solution, st pricedStrategy) *packing.Solution {
	if s = diversifySpot(p, s, st); s.Used.Opened == 0 || st.pricing.IsNearBound(s, smallGap) {
		return s
	}
	b := newBudget(s, st.pricing)
	quick := cmp.Or(p.S.Rules.PackingIterations, defaultSearchSteps)
	if quick > 0 {
		tellSearched(s)
		st.guide = st.pricing.GuidePricesFor(s)
	}
	first := s
	if s = packByLinearProgram(p, s, st, b); s == first {
		improveByLocalSearch(s, st, searchLimit{steps: quick, left: b.all})
	}
	if p.S.Rules.PackingIterations != 0 || !b.allowsSearch() {
		return s
	}
	improveByLocalSearch(s, st, searchLimit{steps: math.MaxInt, done: quick, work: b.left, left: b.all})
	return s
}

// packByLinearProgram chooses all new nodes together, where that takes no more than a part of the work that the plan is
// worth. It returns that solution where it places as many pods for less, else the best.
func packByLinearProgram(p *packing.Problem, best *packing.Solution, st pricedStrategy,
	b *workBudget) *packing.Solution {
	if best.Strategy.Guide == packing.ByLinearProgram || best.Used.Opened == 0 || st.pricing.Worth == nil ||
		st.pricing.IsNearBound(best, smallGap) || !b.allowsFleet(best, st.pricing) {
		return best
	}
	st.Guide = packing.ByLinearProgram
	next := diversifySpot(p, p.Pack(st.Strategy), st)
	if b.allowsSearch() {
		steps := cmp.Or(p.S.Rules.PackingIterations, defaultSearchSteps)
		improveByLocalSearch(next, st, searchLimit{steps: steps, left: b.all})
	}
	if next.Waiting() == best.Waiting() && next.PlacesMoreOrCostsLess(best) {
		return next
	}
	return best
}
