package binpack

import (
	"slices"

	"joiner.sh/pkg/scheduling/lowerbound"
)

const (
	// mostRaised is with how many price classes prices are raised that reckon with whole pods on each node that is
	// there.
	mostRaised = 250
	// mostRaiseWork is how much work goes into that at most, and raisePart which part of what the plan is worth.
	mostRaiseWork, raisePart = 1200 * millisecond, 0.9
	// fewHosts is with how many nodes that are there the search finds by itself what they should hold.
	fewHosts = 20
)

// hostFill is how many pods of which price classes a host should take.
type hostFill = lowerbound.LimitedFill

// raisePrices finds prices that prove more than those of the problem, because nodes that are there hold whole pods, and
// what these nodes hold in a fleet of about the least price. It does nothing where that takes too much work.
func (w *problem) raisePrices(a *solution) {
	work := min(mostRaiseWork, int(raisePart*float64(w.newBudget(a).left)))
	if work < leastSearchWork || len(w.nodes.hosts) <= fewHosts || len(w.worth.classes) > mostRaised {
		return
	}
	out := *w.worth
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
	raised := lowerbound.RaiseBound(p, w.worth.prices.Value[:len(w.worth.classes)], work)
	out.prices, out.hostWorth = raised.ClassPrices, make([]float64, len(at))
	w.raised, w.raiseWork, w.hostFills = &out, raised.Work, make([]hostFill, len(at))
	for i, j := range at {
		if out.hostWorth[i] = noPrice; j >= 0 {
			out.hostWorth[i], w.hostFills[i] = raised.Worth[j], raised.Fills[j]
		}
	}
}

// withHostFills is the solution, or another in which nodes that are there take what they hold in the fleet that
// raisePrices found, and that costs less.
func (w *problem) withHostFills(best *solution, st strategy) (*solution, strategy) {
	if w.raised == nil {
		return best, st
	}
	filled := st
	filled.hostFills = w.hostFills
	if a := w.packByPrices(filled); a.placesMoreOrCostsLess(best) {
		return a, filled
	}
	return best, st
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
				if n := a.joinBinUpTo(l, a.bins[i], left); n > 0 {
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
func (a *solution) joinBinUpTo(l *podBatch, b *bin, most int) int {
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
