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

const (
	// fewNodes is the number of new nodes up to which it is worth while to try a second way of choosing them. Of many,
	// the first is better. Without the second way 10 of 1,500 random worlds place fewer pods.
	fewNodes = 120
	// smallGap is the gap to the lower bound, as a part of it, of a plan that is good enough.
	smallGap = 0.0005
	// defaultNodeCost is the cost of a node beside its price, in USD per hour, where the settings do not say.
	defaultNodeCost = 0.0002
	// scarceNodeUSD is the cost of a node beside its price, in USD per hour, where limits leave few of them: more than
	// any instance.
	scarceNodeUSD = 1000
)

// pricedStrategy is a strategy with the pricing that it packs by and that proves how good its solutions are.
type pricedStrategy struct {
	packing.Strategy
	pricing *prices.Pricing
}

// pricedBy is the strategy with another pricing.
func (st pricedStrategy) pricedBy(px *prices.Pricing) pricedStrategy {
	st.Prices, st.pricing = px, px
	return st
}

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

// plainStrategy returns the strategy that is tried first: all pods at once, by their prices.
func plainStrategy(p *packing.Problem, px *prices.Pricing) pricedStrategy {
	st := packing.Strategy{NodeCost: cmp.Or(p.S.Rules.PerNodeOverheadUSD, defaultNodeCost)}
	return pricedStrategy{Strategy: st}.pricedBy(px)
}

// packByPrices packs everything by the prices of pods and, where the outcome leaves something to wish for, by the price
// of each pod's share of a node too. The second has to place as many pods for less.
func packByPrices(p *packing.Problem, st pricedStrategy) *packing.Solution {
	st.Guide = packing.ByShadowPrice
	first := p.Pack(st.Strategy)
	if first.Used.Opened == 0 || first.Used.Opened > fewNodes || st.pricing.IsNearBound(first, smallGap) {
		return first
	}
	st.Guide = packing.ByCostShare
	if second := p.Pack(st.Strategy); second.PlacesMoreOrCostsLess(first) {
		return second
	}
	return first
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

// withinLimits is the solution, or another with as few nodes as can be, where limits leave pods that fewer and larger
// nodes have room for.
func withinLimits(p *packing.Problem, s *packing.Solution, st pricedStrategy) *packing.Solution {
	if !s.MayBeLimited() || s.Used.Opened == 0 || s.Used.Opened > fewNodes || !s.IsShort() {
		return s
	}
	st.NodeCost = scarceNodeUSD
	if b := packByPrices(p, st); b.LeavesFewer(s) {
		b.Strategy.NodeCost = s.Strategy.NodeCost
		return b
	}
	return s
}

// improvePlan is the solution after all searches for something cheaper: less in one pool of spot capacity, and all new
// nodes chosen together or, where that is not cheaper, a few at a time packed anew. What remains of the work that the
// plan is worth then goes into the best of them.
func improvePlan(p *packing.Problem, s *packing.Solution, st pricedStrategy) *packing.Solution {
	if s = diversifySpot(p, s, st); st.pricing.IsNearBound(s, smallGap) {
		return s
	}
	b := newBudget(s, st.pricing)
	quick := cmp.Or(p.S.Rules.PackingIterations, defaultSearchSteps)
	if quick > 0 {
		tellSearched(s)
	}
	first := s
	if s = packByLinearProgram(p, s, st, b); s == first {
		improveByLocalSearch(s, st.pricing, searchLimit{steps: quick, left: b.all})
	}
	if p.S.Rules.PackingIterations != 0 || !b.allowsSearch() {
		return s
	}
	improveByLocalSearch(s, st.pricing, searchLimit{steps: math.MaxInt, done: quick, work: b.left, left: b.all})
	return s
}

// packByLinearProgram chooses all new nodes together, where that takes no more than a part of the work that the plan is
// worth. It returns the solution that places more pods or is cheaper.
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
		improveByLocalSearch(next, st.pricing, searchLimit{steps: steps, left: b.all})
	}
	if next.Waiting() == best.Waiting() && next.PlacesMoreOrCostsLess(best) {
		return next
	}
	return best
}
