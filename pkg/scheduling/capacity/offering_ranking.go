package capacity

import (
	"cmp"
	"math"
	"slices"

	"joiner.sh/pkg/model/rounding"
	"joiner.sh/pkg/scheduling/podclass"
)

// ShareRanking finds the cheapest share of an offering for a pod without looking at them all: by resource, it has the
// offerings in the order of what a unit of that costs on them, as far as anybody looked.
type ShareRanking struct {
	offerings []*Offering
	by        []*rankedOfferings // by dimension
	known     map[pricedNeed]float64
	nodes     map[nodePriceKey]map[string]float64 // see NodePrices
}

// rankedOfferings are offerings of which the first are in order.
type rankedOfferings struct{ first, rest []rankedOffering }

// at is the offering at the place in the order; false when there are not as many.
func (r *rankedOfferings) at(place int) (rankedOffering, bool) {
	for len(r.first) <= place && len(r.rest) > 0 {
		r.rankMore()
	}
	if place < len(r.first) {
		return r.first[place], true
	}
	return rankedOffering{}, false
}

// rankMore puts the offerings in order whose units cost up to twice the least: few are asked about. The least is the
// same in any order of equals.
func (r *rankedOfferings) rankMore() {
	byUnit := func(a, b rankedOffering) int { return cmp.Compare(a.unit, b.unit) }
	most, ranked := 2*slices.MinFunc(r.rest, byUnit).unit, len(r.first)
	r.rest = slices.DeleteFunc(r.rest, func(o rankedOffering) bool {
		if o.unit > most {
			return false
		}
		r.first = append(r.first, o)
		return true
	})
	slices.SortFunc(r.first[ranked:], byUnit)
}

// rankedOffering is an offering with the price of a unit of some resource, as if the others came for free.
type rankedOffering struct {
	unit     float64
	offering *Offering
}

// pricedNeed is a question that a ranking has answered.
type pricedNeed struct {
	admit *podclass.Admission
	shape int
}

// NewRanking ranks the offerings by each of so many resources.
func NewRanking(offerings []*Offering, dims int) *ShareRanking {
	return &ShareRanking{offerings: offerings, by: make([]*rankedOfferings, dims), known: map[pricedNeed]float64{},
		nodes: map[nodePriceKey]map[string]float64{}}
}

// MinShare is the lowest price, in USD per hour, of the part of a node that one pod of the class takes, over the
// offerings that the admission allows; NoPrice where there is none.
func (r *ShareRanking) MinShare(admit *podclass.Admission, class *podclass.Class) float64 {
	id := pricedNeed{admit, class.Shape}
	p, ok := r.known[id]
	if !ok {
		p = r.MinShareOf(admit, class.Need)
		r.known[id] = p
	}
	return p
}

// MinShareOf is MinShare for a pod that needs as much as the vector says.
func (r *ShareRanking) MinShareOf(admit *podclass.Admission, needs []int64) float64 {
	list := &rankedOfferings{}
	need, from := int64(0), -1.0
	for d, x := range needs {
		if x == 0 {
			continue
		}
		units := r.offeringsByUnitPrice(d)
		least, ok := units.at(0)
		if !ok {
			list = units // nobody has any
			break
		}
		if first := float64(x) * least.unit; first > from {
			list, need, from = units, x, first
		}
	}
	best := NoPrice
	if from < 0 { // it needs nothing
		list = r.offeringsByUnitPrice(0)
	}
	for place := 0; ; place++ {
		e, ok := list.at(place)
		if !ok || float64(need)*e.unit*(1-rounding.Error) > best {
			break
		}
		if s := DominantShare(needs, e.offering.Room); s <= 1 && e.offering.Price*s < best &&
			e.offering.FirstAlternative(admit) >= 0 {
			best = e.offering.Price * s
		}
	}
	return best
}

// offeringsByUnitPrice are the offerings that have any of the resource, in the order of what a unit costs.
func (r *ShareRanking) offeringsByUnitPrice(d int) *rankedOfferings {
	if r.by[d] == nil {
		r.by[d] = &rankedOfferings{rest: make([]rankedOffering, 0, len(r.offerings))}
		for _, o := range r.offerings {
			if o.Room[d] > 0 {
				r.by[d].rest = append(r.by[d].rest, rankedOffering{o.Price / float64(o.Room[d]), o})
			}
		}
	}
	return r.by[d]
}

// NoPrice is the price of what nobody sells, in USD per hour.
const NoPrice = math.MaxFloat32

// DominantShare is the largest part of any resource of the room that need takes.
func DominantShare(need, room []int64) float64 {
	var most float64
	for i, x := range need {
		if x > 0 {
			if room[i] <= 0 {
				return NoPrice
			}
			most = max(most, float64(x)/float64(room[i]))
		}
	}
	return most
}
