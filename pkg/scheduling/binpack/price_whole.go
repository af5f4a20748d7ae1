package binpack

import (
	"slices"

	"joiner.sh/pkg/scheduling/lowerbound"
)

const (
	// mostRaised is with how many price classes prices are raised that reckon with whole pods on each node that is
	// there.
	mostRaised = 250
	// leastHostFillWork is how much work another solution begins with.
	leastHostFillWork = 300 * millisecond
	// raisingShare is the part of the work after which prices are raised no more: better ones bring the search, which
	// has the rest, further than more steps do.
	raisingShare = 0.75
	// givingShare is how much more work it may take, as a part of that, to find what nodes that are there hold.
	givingShare = 0.25
	// fewHosts is with how many nodes that are there the search finds by itself what they should hold.
	fewHosts = 20
)

// hostFill is how many pods of which price classes a host should take.
type hostFill = lowerbound.LimitedFill

// hostFillSearch looks for a solution that begins with what whole pods on the nodes that are there do for the price.
type hostFillSearch struct{ w *problem }

// workFor is how much work goes into the search: as much as into improving the solution, as far as the limit of a plan
// leaves that. It is 0 where there is nothing to hope for.
func (f hostFillSearch) workFor(a *solution) int {
	w := f.w
	if w.s.Rules.PackingIterations != 0 || w.alone == nil || len(w.nodes.hosts) <= fewHosts ||
		len(w.worth.classes) > mostRaised || a.newNodePrice() <= a.lowerBound()*(1+smallGap) {
		return 0
	}
	b := w.newBudget(a)
	work := min(b.left, b.most-b.left)
	if work < leastHostFillWork {
		return 0
	}
	return work
}

// raisePrices finds prices that prove more than those of the problem, because nodes that are there hold whole pods, and
// what these nodes hold in a fleet of about the least price. It begins with a plan and returns the work that this took.
func (f hostFillSearch) raisePrices(plan *solution, work int) int {
	raised, r := f.raise(plan, *f.w.worth, work)
	fills, more := r.bound.GiveFills(int(givingShare * float64(work)))
	f.w.raised, f.w.hostFills = raised, make([]hostFill, len(r.offers))
	for i, j := range r.offers {
		if j >= 0 {
			f.w.hostFills[i] = fills[j]
		}
	}
	return r.bound.Work + more
}

// raiseForNewNodes raises the prices again where that proves more: pods that need new nodes have their own prices.
func (f hostFillSearch) raiseForNewNodes(plan *solution, work int) {
	bound, first := plan.lowerBound(), f.w.raised
	if work < leastSearchWork || plan.newNodePrice() <= bound*(1+smallGap) {
		return
	}
	from := *first
	if from.parts = from.newNodeParts(plan); len(from.parts) == 0 {
		return
	}
	f.w.raised, _ = f.raise(plan, from, work)
	if plan.lowerBound() < bound {
		f.w.raised = first
	}
}

// raisedHosts is the outcome of raising prices.
type raisedHosts struct {
	bound  lowerbound.RaisedBound
	offers []int // by host: which offer it is, -1 for none
}

// raise raises prices, from given ones, beginning with a plan.
func (f hostFillSearch) raise(plan *solution, out shadowPrices, work int) (*shadowPrices, raisedHosts) {
	w := f.w
	p := lowerbound.CoverProblem{Classes: slices.Clone(w.worth.problem.Classes), Caps: w.worth.problem.Caps}
	for _, o := range w.worth.problem.Offers {
		if o.Limit == 0 {
			p.Offers = append(p.Offers, o)
		}
	}
	h := hostOffers{w, &out}
	at := make([]int, len(w.nodes.hosts))
	for i, b := range w.nodes.hosts {
		o := lowerbound.NodeOffer{Room: scaleNeed(b.room, out.units), Holds: h.classesOn(b), Limit: 1}
		if at[i] = -1; len(o.Holds) > 0 {
			at[i], p.Offers = len(p.Offers), append(p.Offers, o)
		}
	}
	raised := raiseWithParts(p, &out, f.plannedNodes(plan, at), work)
	out.prices, out.hostWorth = raised.ClassPrices, make([]float64, len(at))
	for i, j := range at {
		if out.hostWorth[i] = noPrice; j >= 0 {
			out.hostWorth[i] = raised.Worth[j]
		}
	}
	return &out, raisedHosts{raised, at}
}

// plannedNodes is what the nodes of the solution hold, where at tells by host which offer it is, -1 for none.
func (f hostFillSearch) plannedNodes(plan *solution, at []int) []lowerbound.PlannedNode {
	var out []lowerbound.PlannedNode
	host := 0
	for _, b := range plan.bins {
		x := lowerbound.PlannedNode{Offer: -1}
		if b.offer == nil {
			x.Offer = at[host]
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
	return out
}

// findCheaper is the solution, or another that costs less: nodes that are there first take what they hold in the
// fleet that raisePrices finds, and it is improved with what remains of the work.
func (f hostFillSearch) findCheaper(best *solution, st strategy, work int) *solution {
	if work == 0 {
		return best
	}
	raising := int(raisingShare * float64(work))
	used := f.raisePrices(best, raising)
	if a, filled := f.packHostFills(st); a.waiting() <= best.waiting() {
		if a = f.w.improve(a, filled, max(0, work-used)); a.placesMoreOrCostsLess(best) {
			best = a
		}
	}
	f.raiseForNewNodes(best, raising-used)
	return best
}

// packHostFills is a solution in which hosts take what raisePrices found, and its strategy.
func (f hostFillSearch) packHostFills(st strategy) (*solution, strategy) {
	st.hostFills = f.w.hostFills
	return f.w.packByPrices(st), st
}

// placeHostFills puts pods of the batches on the hosts as far as the strategy says how many of which each should take.
func (pk *packing) placeHostFills(batches []*podBatch) {
	a := pk.a
	byClass := map[int32][]*podBatch{}
	for _, l := range batches {
		c := a.w.worth.classOf(l.view.class, l.pins)
		byClass[c] = append(byClass[c], l)
	}
	for i, fill := range a.strategy.hostFills {
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
