package search

import (
	"slices"

	"joiner.sh/pkg/scheduling/lowerbound"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/prices"
)

// hardlyAny is the count of a class that no pod must be of, but some may.
const hardlyAny = 1e-6

// raisedProblem is the problem of the prices once more, and what pods are worth by them: each node that is there is an
// offer of its own, some pods need new nodes, and those that spread are counted as few in each domain as they may be in
// any plan. The others of them are of any of its classes.
func (f *hostFillSearch) raisedProblem(plan *packing.Solution) (lowerbound.CoverProblem, []float64) {
	q := *f.prices.Worth
	p := &q.Problem
	*p = lowerbound.CoverProblem{Classes: slices.Clone(p.Classes), Caps: p.Caps}
	q.LimitToPods(p.Classes, f.w.Classes.List)
	values := slices.Clone(q.Prices.Value[:len(q.Classes)])
	counts, anyOf, loose := q.CountAtLeast(plan)
	f.loose = loose
	for i, n := range counts {
		p.Classes[i].Count = n
	}
	for _, l := range anyOf {
		usd := 0.0
		for _, c := range l.AnyOf {
			p.Classes[c].Count, usd = max(p.Classes[c].Count, hardlyAny), max(usd, values[c])
		}
		for _, c := range l.AnyOf {
			if values[c] == 0 { // no pod was expected there, and so no price found
				values[c] = usd
			}
		}
	}
	prices.AddUsefulOffers(f.w, &q)
	f.addEachHost(&q)
	f.parts = f.prices.Worth.NewNodeParts(f.w, counts)
	prices.SplitClasses(p, f.parts)
	values = prices.ValuesWithParts(values, f.parts)
	p.Classes = append(p.Classes, anyOf...)
	return *p, append(values, make([]float64, len(anyOf))...)
}

// addEachHost adds each node that is there as an offer of its own.
func (f *hostFillSearch) addEachHost(q *prices.ShadowPrices) {
	h := prices.HostOffers{W: f.w, Out: q}
	f.offers = make([]int, len(f.w.Nodes.Hosts))
	for i, b := range f.w.Nodes.Hosts {
		o := lowerbound.NodeOffer{Room: packing.ScaleNeed(b.Room, q.Units), Holds: h.ClassesOn(b), Limit: 1}
		if f.offers[i] = -1; len(o.Holds) > 0 {
			f.offers[i], q.Problem.Offers = len(q.Problem.Offers), append(q.Problem.Offers, o)
		}
	}
}
