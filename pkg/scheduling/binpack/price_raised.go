package binpack

import (
	"slices"

	"joiner.sh/pkg/scheduling/lowerbound"
)

// hardlyAny is the count of a class that no pod must be of, but some may.
const hardlyAny = 1e-6

// raisedProblem is the problem of the prices once more, and what pods are worth by them: each node that is there is an
// offer of its own, some pods need new nodes, and those that spread are counted as few in each domain as they may be in
// any plan. The others of them are of any of its classes.
func (f *hostFillSearch) raisedProblem(plan *solution) (lowerbound.CoverProblem, []float64) {
	q := *f.prices.worth
	p := &q.problem
	*p = lowerbound.CoverProblem{Classes: slices.Clone(p.Classes), Caps: p.Caps}
	q.limitToPods(p.Classes, f.w.classes.List)
	values := slices.Clone(q.prices.Value[:len(q.classes)])
	counts, anyOf, loose := q.countAtLeast(plan)
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
	addUsefulOffers(f.w, &q)
	f.addEachHost(&q)
	f.parts = f.prices.worth.newNodeParts(f.w, counts)
	splitClasses(p, f.parts)
	values = valuesWithParts(values, f.parts)
	p.Classes = append(p.Classes, anyOf...)
	return *p, append(values, make([]float64, len(anyOf))...)
}

// addEachHost adds each node that is there as an offer of its own.
func (f *hostFillSearch) addEachHost(q *shadowPrices) {
	h := hostOffers{f.w, q}
	f.offers = make([]int, len(f.w.nodes.Hosts))
	for i, b := range f.w.nodes.Hosts {
		o := lowerbound.NodeOffer{Room: scaleNeed(b.Room, q.units), Holds: h.classesOn(b), Limit: 1}
		if f.offers[i] = -1; len(o.Holds) > 0 {
			f.offers[i], q.problem.Offers = len(q.problem.Offers), append(q.problem.Offers, o)
		}
	}
}
