package binpack

import (
	"cmp"
	"slices"
)

// shareRanking finds the cheapest share of an offer for a pod without looking at them all: by resource, it has the
// offers in the order of what a unit of that costs on them, made when it is first needed.
type shareRanking struct {
	offers []*poolOffering
	by     [][]rankedOffer // by dimension
	known  map[pricedNeed]float64
}

// rankedOffer is an offer with the price of a unit of some resource, as if the others came for free.
type rankedOffer struct {
	unit  float64
	offer *poolOffering
}

// pricedNeed is a question that a ranking has answered.
type pricedNeed struct {
	admit *nodeAdmission
	shape int
}

func newRanking(offers []*poolOffering, dims int) *shareRanking {
	return &shareRanking{offers: offers, by: make([][]rankedOffer, dims), known: map[pricedNeed]float64{}}
}

// minShare is the lowest price, in USD per hour, of the part of a node that one pod of the class takes, over the offers
// that the admission allows; noPrice where there is none.
func (r *shareRanking) minShare(admit *nodeAdmission, k *podClass) float64 {
	id := pricedNeed{admit, k.shape}
	p, ok := r.known[id]
	if !ok {
		p = r.minShareOf(admit, k.need)
		r.known[id] = p
	}
	return p
}

// minShareOf is minShare for a pod that needs as much as the vector says.
func (r *shareRanking) minShareOf(admit *nodeAdmission, needs []int64) float64 {
	var list []rankedOffer
	need, from := int64(0), -1.0
	for d, x := range needs {
		if x == 0 {
			continue
		}
		units := r.offersByUnitPrice(d)
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
		list = r.offersByUnitPrice(0)
	}
	for _, e := range list {
		if float64(need)*e.unit*(1-1e-12) > best {
			break
		}
		if s := dominantShare(needs, e.offer.room); s <= 1 && e.offer.Price*s < best &&
			admit.firstAlternative(e.offer) >= 0 {
			best = e.offer.Price * s
		}
	}
	return best
}

// offersByUnitPrice are the offers that have any of the resource, in the order of what a unit costs.
func (r *shareRanking) offersByUnitPrice(d int) []rankedOffer {
	if r.by[d] == nil {
		r.by[d] = make([]rankedOffer, 0, len(r.offers))
		for _, o := range r.offers {
			if o.room[d] > 0 {
				r.by[d] = append(r.by[d], rankedOffer{o.Price / float64(o.room[d]), o})
			}
		}
		// the least is the same in any order of equals
		slices.SortFunc(r.by[d], func(a, b rankedOffer) int { return cmp.Compare(a.unit, b.unit) })
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
func (cat *catalog) minPriceShare(v *relaxedPod, pins []domainPin) float64 {
	return cat.sale.minShare(cat.admissions.pinnedAdmission(v.admit, pins), v.class)
}

// cheapestNode is the lowest price of a node, in USD per hour, that may hold a pod of the view; noPrice for none.
func (cat *catalog) cheapestNode(v *relaxedPod) float64 {
	best := noPrice
	for _, p := range cat.pools {
		for _, o := range p.sale { // cheapest first
			if o.Price >= best {
				break
			}
			if fitCount(v.class.need, o.room) > 0 && v.admit.firstAlternative(o) >= 0 {
				best = o.Price
			}
		}
	}
	return best
}

// forSome reports whether a node for a pod of the view is for sale, or reserved.
func (cat *catalog) forSome(v *relaxedPod) bool {
	return cat.minPriceShare(v, nil) < noPrice || slices.ContainsFunc(cat.pools,
		func(p *pool) bool { return p.reserves(v.class, v.admit) })
}
