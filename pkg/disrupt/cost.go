package disrupt

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/resource"
)

// priceOf is what the host costs, as its labels say what it is, whether or not more of it can be had. 0 is unknown.
func (v *view) priceOf(h cluster.Host, p cluster.Pool) (catalog.Offer, float64) {
	l := h.Labels()
	o := catalog.Offer{CapacityType: l[v1.LabelCapacityType], Type: l[corev1.LabelInstanceTypeStable], Zone: l[corev1.LabelTopologyZone]}
	t, ok := v.typeIn(p, o.Type)
	if !ok {
		return o, 0
	}
	for _, x := range t.Offerings {
		if x.Offer == o && len(x.Paid) == 0 && (x.Reservation == nil || x.Reservation.ID == l[catalog.LabelReservationID]) {
			if part := v.paid[h.Claim.Name]; part > 0 && x.Reservation == nil {
				return o, catalog.PaidPrice(x.Price, part)
			}
			return o, x.Price
		}
	}
	return o, 0
}

// amounts is a need that can be looked up.
type amounts struct {
	cpu, memory, ephemeral, pods int64
	extended                     string
}

func amountsOf(l resource.List) amounts {
	out := amounts{cpu: l.CPU, memory: l.Memory, ephemeral: l.Ephemeral, pods: l.Pods}
	if len(l.Extended) > 0 {
		out.extended = l.String()
	}
	return out
}

// shelf is a price with what it buys.
type shelf struct {
	price float64
	room  resource.List
}

// worthOf is the least that the share of a node costs which pods of this need take, over everything that is sold: less than
// this no move can make of them.
func (v *view) worthOf(need resource.List) float64 {
	if v.shelf == nil {
		v.shelf = v.shelves()
	}
	key := amountsOf(need)
	if w, ok := v.worths[key]; ok {
		return w
	}
	best := math.Inf(1)
	for _, s := range v.shelf {
		best = min(best, s.price*share(need, s.room))
	}
	if math.IsInf(best, 1) {
		best = 0
	}
	v.worths[key] = best
	return best
}

func (v *view) shelves() []shelf {
	out := []shelf{}
	seen := map[string]bool{}
	for _, p := range v.s.Pools {
		if seen[p.Class] || !p.Ready {
			continue
		}
		seen[p.Class] = true
		for _, t := range v.types(p) {
			for _, o := range t.Offerings {
				if o.Available && o.Price > 0 && (len(o.Paid) == 0 || v.covers(o)) {
					out = append(out, shelf{o.Price, t.Allocatable})
					break // the cheapest of the type
				}
			}
		}
	}
	return out
}

// share is the largest part of any resource of room that need takes, infinite where it does not fit.
func share(need, room resource.List) float64 {
	most := 0.0
	for _, name := range need.Names() {
		have := room.Get(name)
		if need.Get(name) > have {
			return math.Inf(1)
		}
		most = max(most, float64(need.Get(name))/float64(have))
	}
	return most
}

// covers reports whether a commitment of the account has room for one more of the offering.
func (v *view) covers(o catalog.Offering) bool {
	return slices.ContainsFunc(o.Paid, func(d catalog.Draw) bool { return v.room[d.Commitment] >= d.Amount })
}
