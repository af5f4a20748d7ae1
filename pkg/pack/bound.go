package pack

import (
	"slices"

	"joiner/pkg/cover"
)

// bound is what any plan costs at least that gives a place to all pods that the attempt gives one, new nodes priced by their
// cheapest offer: the more of what two proofs say. Neither knows of limits or weights of pools, which can only make plans dearer.
func (a *attempt) bound() float64 {
	if a.opened == 0 || a.w.worth == nil {
		return 0
	}
	return max(a.shared(), a.single())
}

// single is the price of the cheapest node for the pod that is hardest to please, of those that no host and no reservation can
// take: a whole node has to be made for it.
func (a *attempt) single() float64 {
	most := 0.0
	for i, k := range a.w.kinds {
		if len(a.rest[i]) == len(k.pods) {
			continue
		}
		if price := a.w.cheapestNode(k.last()); price < noPrice && price > most && !a.w.roomFor(k.last()) {
			most = price
		}
	}
	return most * (1 - 1e-9)
}

// cheapestNode is the lowest price of a node, in USD per hour, that may hold a pod of the view; noPrice for none.
func (w *world) cheapestNode(v *view) float64 {
	best := noPrice
	for _, p := range w.pools {
		for _, o := range p.sale { // cheapest first
			if o.Price >= best {
				break
			}
			if fits(v.kind.need, o.room) > 0 && v.admit.check(o) >= 0 {
				best = o.Price
			}
		}
	}
	return best
}

// roomFor reports whether a pod of the view could be on a host or in reserved capacity, were it alone.
func (w *world) roomFor(v *view) bool {
	for _, b := range w.hosts {
		if fits(v.kind.need, b.room) > 0 && w.onHost(v.admit, b) >= 0 {
			return true
		}
	}
	for _, p := range w.pools {
		for _, o := range slices.Concat(p.reserved, p.paid) {
			if fits(v.kind.need, o.room) > 0 && v.admit.check(o) >= 0 {
				return true
			}
		}
	}
	return false
}

// shared is what the pods are worth, less what those can be worth that the room there is could hold.
func (a *attempt) shared() float64 {
	p := a.w.worth
	counts := make([]float64, len(p.classes))
	value := p.prices.Value
	sum, loosened := 0.0, 0.0
	for i, k := range a.w.kinds {
		loose, each := p.kinds[i].least(len(k.pods)-len(a.rest[i]), value, counts)
		sum += float64(loose) * each
		loosened += float64(loose) * each
	}
	f := cover.NewFiller(len(a.w.dims), nil)
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
	for _, b := range a.w.hosts {
		items, most = items[:0], most[:0]
		for i, c := range p.classes {
			n := fits(c.need, b.room)
			if apart := p.problem.Classes[i].Most; apart > 0 {
				n = min(n, int(apart))
			}
			if n > 0 && value[i] > 0 && a.w.onHost(c.admit, b) >= 0 {
				items, most = append(items, int32(i)), append(most, float64(n))
				hosted[i] += float64(n)
			}
		}
		if len(items) > 0 {
			room += f.Fill(items, most, scaled(b.room, p.units), &cover.Basis{})
		}
	}
	for _, pool := range a.w.pools { // what is reserved is paid for already
		for _, o := range pool.reserved {
			items, most = items[:0], most[:0]
			for i, c := range p.classes {
				if n := fits(c.need, o.room); n > 0 && value[i] > 0 && c.admit.check(o) >= 0 {
					items, most = append(items, int32(i)), append(most, float64(n))
					hosted[i] += float64(n) * float64(o.Reservation.Remaining)
				}
			}
			if len(items) > 0 {
				room += f.Fill(items, most, scaled(o.room, p.units), &cover.Basis{}) * float64(o.Reservation.Remaining)
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
