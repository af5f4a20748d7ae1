package binpack

import (
	"slices"

	"joiner/pkg/scheduling/lowerbound"
)

// lowerBound is what any plan costs at least that gives a place to all pods that the attempt gives one, new nodes
// priced by their cheapest offer: the more of what two proofs say. Neither knows of limits or weights of pools, which
// can only make plans dearer.
func (a *solution) lowerBound() float64 {
	if a.opened == 0 || a.w.worth == nil {
		return 0
	}
	return max(a.sharedBound(), a.singleNodeBound())
}

// singleNodeBound is the price of the cheapest node for the pod that is hardest to please, of those that no host and no
// reservation can take: a whole node has to be made for it.
func (a *solution) singleNodeBound() float64 {
	most := 0.0
	for i, k := range a.w.classes.list {
		if len(a.rest[i]) == len(k.pods) {
			continue
		}
		if price := a.w.catalog.cheapestNode(k.lastRelaxation()); price < noPrice && price > most &&
			!a.w.roomFor(k.lastRelaxation()) {
			most = price
		}
	}
	return most * (1 - 1e-9)
}

// cheapestNode is the lowest price of a node, in USD per hour, that may hold a pod of the view; noPrice for none.
func (cat *catalog) cheapestNode(v *relaxedPod) float64 {
	best := noPrice
	for _, p := range cat.pools {
		for _, o := range p.sale { // cheapest first
			if o.Price >= best {
				break
			}
			if fitCount(v.kind.need, o.room) > 0 && v.admit.firstAlternative(o) >= 0 {
				best = o.Price
			}
		}
	}
	return best
}

// roomFor reports whether a pod of the view could be on a host or in reserved capacity, were it alone.
func (w *problem) roomFor(v *relaxedPod) bool {
	for _, b := range w.nodes.hosts {
		if fitCount(v.kind.need, b.room) > 0 && v.admit.alternativeOn(b) >= 0 {
			return true
		}
	}
	for _, p := range w.catalog.pools {
		for _, o := range slices.Concat(p.reserved, p.paid) {
			if fitCount(v.kind.need, o.room) > 0 && v.admit.firstAlternative(o) >= 0 {
				return true
			}
		}
	}
	return false
}

// sharedBound is what the pods are worth, less what those can be worth that the room there is could hold.
func (a *solution) sharedBound() float64 {
	p := a.w.worth
	counts := make([]float64, len(p.classes))
	value := p.prices.Value
	sum, loosened := 0.0, 0.0
	for i, k := range a.w.classes.list {
		loose, each := p.kinds[i].addMinimumCounts(len(k.pods)-len(a.rest[i]), value, counts)
		sum += float64(loose) * each
		loosened += float64(loose) * each
	}
	f := lowerbound.NewFiller(len(a.w.dims), nil)
	f.Value = value
	for c, n := range counts {
		f.Need = append(f.Need, p.problem.Classes[c].Need...)
		f.Group = append(f.Group, -1)
		sum += n * value[c]
	}
	var items []int32
	var most []float64
	room := 0.0                            // what the hosts can hold is worth
	hosted := make([]float64, len(counts)) // by class: how many pods they can hold, each class alone
	for _, b := range a.w.nodes.hosts {
		items, most = items[:0], most[:0]
		for i, c := range p.classes {
			n := fitCount(c.need, b.room)
			if apart := p.problem.Classes[i].Most; apart > 0 {
				n = min(n, int(apart))
			}
			if n > 0 && value[i] > 0 && c.admit.alternativeOn(b) >= 0 {
				items, most = append(items, int32(i)), append(most, float64(n))
				hosted[i] += float64(n)
			}
		}
		if len(items) > 0 {
			room += f.Fill(items, most, scaleNeed(b.room, p.units), &lowerbound.Basis{})
		}
	}
	for _, pool := range a.w.catalog.pools { // what is reserved is paid for already
		for _, o := range pool.reserved {
			items, most = items[:0], most[:0]
			for i, c := range p.classes {
				if n := fitCount(c.need, o.room); n > 0 && value[i] > 0 && c.admit.firstAlternative(o) >= 0 {
					items, most = append(items, int32(i)), append(most, float64(n))
					hosted[i] += float64(n) * float64(o.Reservation.Remaining)
				}
			}
			if len(items) > 0 {
				room += f.Fill(items, most, scaleNeed(o.room, p.units),
					&lowerbound.Basis{}) * float64(o.Reservation.Remaining)
			}
		}
	}
	room += a.paidRoom(f, hosted)
	each := 0.0 // the same, where no class has more pods than it has
	for i, n := range hosted {
		each += value[i] * min(n, counts[i])
	}
	return max(0, (sum-min(room, each+loosened))*(1-1e-9))
}
