package binpack

import (
	"cmp"
	"slices"

	"joiner.sh/pkg/scheduling/podclass"
)

// shareRanking finds the cheapest share of an offer for a pod without looking at them all: by resource, it has the
// offers in the order of what a unit of that costs on them, as far as anybody looked.
type shareRanking struct {
	offers []*poolOffering
	by     []*rankedOffers // by dimension
	known  map[pricedNeed]float64
}

// rankedOffers are offers of which the first are in order.
type rankedOffers struct{ first, rest []rankedOffer }

// rankedAtOnce is how many times what a unit costs at least it may cost on offers that are put in order together: few
// offers are asked about.
const rankedAtOnce = 1.2

// at is the offer at the place in the order; false when there are not as many.
func (r *rankedOffers) at(place int) (rankedOffer, bool) {
	for len(r.first) <= place && len(r.rest) > 0 {
		r.rankMore()
	}
	if place < len(r.first) {
		return r.first[place], true
	}
	return rankedOffer{}, false
}

// rankMore puts some more offers in order. The least is the same in any order of equals.
func (r *rankedOffers) rankMore() {
	byUnit := func(a, b rankedOffer) int { return cmp.Compare(a.unit, b.unit) }
	most, ranked := rankedAtOnce*slices.MinFunc(r.rest, byUnit).unit, len(r.first)
	r.rest = slices.DeleteFunc(r.rest, func(o rankedOffer) bool {
		if o.unit > most {
			return false
		}
		r.first = append(r.first, o)
		return true
	})
	slices.SortFunc(r.first[ranked:], byUnit)
}

// rankedOffer is an offer with the price of a unit of some resource, as if the others came for free.
type rankedOffer struct {
	unit  float64
	offer *poolOffering
}

// pricedNeed is a question that a ranking has answered.
type pricedNeed struct {
	admit *podclass.Admission
	shape int
}

// newRanking ranks the offers by each of so many resources.
func newRanking(offers []*poolOffering, dims int) *shareRanking {
	return &shareRanking{offers: offers, by: make([]*rankedOffers, dims), known: map[pricedNeed]float64{}}
}

// minShare is the lowest price, in USD per hour, of the part of a node that one pod of the class takes, over the offers
// that the admission allows; noPrice where there is none.
func (r *shareRanking) minShare(admit *podclass.Admission, k *podclass.Class) float64 {
	id := pricedNeed{admit, k.Shape}
	p, ok := r.known[id]
	if !ok {
		p = r.minShareOf(admit, k.Need)
		r.known[id] = p
	}
	return p
}

// minShareOf is minShare for a pod that needs as much as the vector says.
func (r *shareRanking) minShareOf(admit *podclass.Admission, needs []int64) float64 {
	list := &rankedOffers{}
	need, from := int64(0), -1.0
	for d, x := range needs {
		if x == 0 {
			continue
		}
		units := r.offersByUnitPrice(d)
		least, ok := units.at(0)
		if !ok {
			list = units // nobody has any
			break
		}
		if first := float64(x) * least.unit; first > from {
			list, need, from = units, x, first
		}
	}
	best := noPrice
	if from < 0 { // it needs nothing
		list = r.offersByUnitPrice(0)
	}
	for place := 0; ; place++ {
		e, ok := list.at(place)
		if !ok || float64(need)*e.unit*(1-1e-12) > best {
			break
		}
		if s := dominantShare(needs, e.offer.room); s <= 1 && e.offer.Price*s < best &&
			e.offer.firstAlternative(admit) >= 0 {
			best = e.offer.Price * s
		}
	}
	return best
}

// offersByUnitPrice are the offers that have any of the resource, in the order of what a unit costs.
func (r *shareRanking) offersByUnitPrice(d int) *rankedOffers {
	if r.by[d] == nil {
		r.by[d] = &rankedOffers{}
		for _, o := range r.offers {
			if o.room[d] > 0 {
				r.by[d].rest = append(r.by[d].rest, rankedOffer{o.Price / float64(o.room[d]), o})
			}
		}
	}
	return r.by[d]
}

// noPrice is the price of what nobody sells, in USD per hour.
const noPrice = 1e18

// dominantShare is the largest part of any resource of the room that need takes.
func dominantShare(need, room []int64) float64 {
	var most float64
	for i, x := range need {
		if x > 0 {
			if room[i] <= 0 {
				return noPrice
			}
			most = max(most, float64(x)/float64(room[i]))
		}
	}
	return most
}

// minPriceShare is the lowest price, in USD per hour, of the part of a node that one pod of the view takes, over all
// offers that are available now.
func (cat *catalog) minPriceShare(v *podclass.RelaxedPod, pins []podclass.DomainPin) float64 {
	return cat.sale.minShare(cat.admissions.PinnedAdmission(v.Admission, pins), v.Class)
}

// cheapestNode is the lowest price of a node, in USD per hour, that may hold a pod of the view; noPrice for none.
func (cat *catalog) cheapestNode(v *podclass.RelaxedPod) float64 {
	best := noPrice
	for _, p := range cat.pools {
		for _, o := range p.sale { // cheapest first
			if o.Price >= best {
				break
			}
			if fitCount(v.Class.Need, o.room) > 0 && o.firstAlternative(v.Admission) >= 0 {
				best = o.Price
			}
		}
	}
	return best
}

// forSome reports whether a node for a pod of the view is for sale, or reserved.
func (cat *catalog) forSome(v *podclass.RelaxedPod) bool {
	return cat.minPriceShare(v, nil) < noPrice || slices.ContainsFunc(cat.pools,
		func(p *pool) bool { return p.reserves(v.Class, v.Admission) })
}
