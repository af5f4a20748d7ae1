package pack

import (
	"cmp"
	"slices"
)

// ranking finds the cheapest share of an offer for a pod without looking at them all: by resource, it has the offers in the order of
// what a unit of that costs on them, made when it is first needed.
type ranking struct {
	offers []*offer
	by     [][]ranked // by dimension
	known  map[priced]float64
}

// ranked is an offer with the price of a unit of some resource, as if the others came for free.
type ranked struct {
	unit  float64
	offer *offer
}

// priced is a question that a ranking has answered.
type priced struct {
	admit *admission
	shape int
}

func newRanking(offers []*offer, dims int) *ranking {
	return &ranking{offers: offers, by: make([][]ranked, dims), known: map[priced]float64{}}
}

// least is the lowest price, in USD per hour, of the part of a node that one pod of the kind takes, over the offers that the
// admission allows; noPrice where there is none.
func (r *ranking) least(admit *admission, k *kind) float64 {
	id := priced{admit, k.shape}
	p, ok := r.known[id]
	if !ok {
		p = r.share(admit, k.need)
		r.known[id] = p
	}
	return p
}

// share is least for a pod that needs as much as the vector says.
func (r *ranking) share(admit *admission, needs []int64) float64 {
	var list []ranked
	need, from := int64(0), -1.0
	for d, x := range needs {
		if x == 0 {
			continue
		}
		units := r.units(d)
		if len(units) == 0 {
			list = nil // nobody has any
			break
		}
		if first := float64(x) * units[0].unit; first > from {
			list, need, from = units, x, first
		}
	}
	best := noPrice
	if from < 0 { // it needs nothing
		list = r.units(0)
	}
	for _, e := range list {
		if float64(need)*e.unit*(1-1e-12) > best {
			break
		}
		if s := share(needs, e.offer.room); s <= 1 && e.offer.Price*s < best && admit.check(e.offer) >= 0 {
			best = e.offer.Price * s
		}
	}
	return best
}

// units are the offers that have any of the resource, in the order of what a unit costs.
func (r *ranking) units(d int) []ranked {
	if r.by[d] == nil {
		r.by[d] = make([]ranked, 0, len(r.offers))
		for _, o := range r.offers {
			if o.room[d] > 0 {
				r.by[d] = append(r.by[d], ranked{o.Price / float64(o.room[d]), o})
			}
		}
		slices.SortFunc(r.by[d], func(a, b ranked) int { return cmp.Compare(a.unit, b.unit) }) // the least is the same in any order of equals
	}
	return r.by[d]
}
