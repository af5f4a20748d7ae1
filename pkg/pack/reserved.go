package pack

import (
	"maps"
	"math"
	"slices"

	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/require"
)

// slots is how many instances the capacity reservations have room for, by their ids. Claims that are not launched yet and are bound
// to one reservation have taken theirs.
func (w *world) slots() map[string]int64 {
	out := map[string]int64{}
	for _, r := range w.bookable {
		if have, ok := out[r.ID]; !ok || r.Remaining < have {
			out[r.ID] = r.Remaining // the least that is said anywhere (spec core.md §3.8)
		}
	}
	for _, h := range w.all {
		if len(out) == 0 || h.Claim == nil || h.Claim.ProviderID != "" || h.Deleting() {
			continue
		}
		if id := reservationOf(*h.Claim); id != "" {
			out[id]--
		}
	}
	maps.Copy(out, w.room)
	return out
}

// slot is what a node of the offer takes of which reservation, or of the commitment that covers it first; nothing where the offer is to be
// had in any number.
func (o *offer) slot() (id string, amount int64) {
	switch {
	case o.Reservation != nil:
		return o.Reservation.ID, 1
	case len(o.Paid) > 0:
		return o.Paid[0].Commitment, o.Paid[0].Amount
	}
	return "", 0
}

func reservationOf(c cluster.Claim) string {
	r, _ := c.Requirements.Get(catalog.LabelReservationID)
	id, _ := r.Single()
	return id
}

// openReserved makes nodes in capacity that is reserved, and so paid for, before any other of the pools: each time those that would
// save most.
func (a *attempt) openReserved(pools []*pool, lots []*lot) {
	var offers []*offer
	for _, p := range pools {
		if p.mayBeOneType {
			offers = append(offers, p.reserved...)
		}
	}
	if len(offers) == 0 {
		return
	}
	for _, l := range lots {
		if l.value = a.w.cheapest(l.view, l.pins); l.value >= noPrice {
			l.value = dear
		}
	}
	for !a.atMost() {
		var best *candidate
		var takes []take
		most := 0.0
		for i, o := range offers {
			p := o.model.pool
			if a.allowance(o, 1) == 0 || len(p.exceeded(a.usage[p.id], o.model.typ.Capacity)) > 0 {
				continue
			}
			c := a.candidate(i, o, lots)
			if t, value := a.fill(c); value > most {
				best, takes, most = c, t, value
			}
		}
		if best == nil {
			return
		}
		if n, _ := a.apply(best.offer, takes, math.MaxInt32); n == 0 {
			return
		}
	}
}

// slotsFor is how many pods of the view, were they alone, the capacity reservations could take where the pins tie them: on nodes to make, and on
// those that were made in them before.
func (a *attempt) slotsFor(v *view, pins []pin) int {
	if a.roomOnly || v.kind.stays {
		return 0
	}
	adm := a.w.pinned(v.admit, pins)
	each := math.MaxInt32 // on one node
	if !v.follows() {
		each = a.w.most(v, site{count: none, anti: none, total: a.total})
	}
	byID := map[string]int{} // several pools may use the same reservation
	for _, p := range a.w.pools {
		if !p.mayBeOneType {
			continue
		}
		for _, o := range p.reserved {
			if nodes := a.allowance(o, math.MaxInt32); nodes > 0 && adm.check(o) >= 0 && len(p.exceeded(a.usage[p.id], o.model.typ.Capacity)) == 0 {
				byID[o.Reservation.ID] = max(byID[o.Reservation.ID], nodes*min(each, fits(v.kind.need, o.room)))
			}
		}
	}
	n := 0
	for _, pods := range byID { // the sum is the same in any order
		n += pods
	}
	for _, b := range a.bins {
		if b.offer != nil && b.offer.Reservation != nil && adm.check(b.offer) >= 0 {
			n += min(fits(v.kind.need, b.room), a.w.most(v, a.site(b)))
		}
	}
	return n
}

// forSome reports whether a node for a pod of the view is for sale, or reserved.
func (w *world) forSome(v *view) bool {
	return w.cheapest(v, nil) < noPrice || slices.ContainsFunc(w.pools, func(p *pool) bool { return p.reserves(v.kind, v.admit) })
}

// reserves reports whether the pool uses a capacity reservation that can take a pod of the kind, were it alone.
func (p *pool) reserves(k *kind, admit *admission) bool {
	return p.mayBeOneType && slices.ContainsFunc(p.reserved, func(o *offer) bool { return fits(k.need, o.room) > 0 && admit.check(o) >= 0 })
}

// dear is what a pod is worth, in USD per hour, that only reserved capacity can take.
const dear = 1e6

// limitedOpening is a new node in reserved capacity or of a type that a commitment covers: it can be nothing else, and what a commitment
// covers is covered with one of the values only that the type leaves open.
func limitedOpening(b *bin, set require.Set) opening {
	for _, r := range b.open.All() {
		if v, own := b.offer.Label(r.Key); own {
			set = set.And(require.Of(r.Key, v))
		}
	}
	if r := b.offer.Reservation; r != nil {
		set = set.And(require.Of(catalog.LabelReservationID, r.ID))
	}
	return opening{bin: b, set: b.low.apply(set), choice: b.offer, opts: onlyOption(b.offer)}
}

// onlyOption is the offer as all that may be launched.
func onlyOption(o *offer) []option {
	return []option{{model: o.model, offers: []*offer{o}, best: o}}
}

// taken reports whether the offers are all reserved, so that only other pods can be in the way.
func taken(offers []*offer) bool {
	return !slices.ContainsFunc(offers, func(o *offer) bool { return !o.Limited() })
}
