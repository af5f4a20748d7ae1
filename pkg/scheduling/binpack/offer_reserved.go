package binpack

import (
	"maps"
	"math"
	"slices"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/requirements"
)

// reservationSlots is how many instances the capacity reservations have room for, by their ids. Claims that are not
// launched yet and are bound to one reservation have taken theirs.
func (w *problem) reservationSlots() map[string]int64 {
	out := map[string]int64{}
	for _, r := range w.catalog.bookable {
		if have, ok := out[r.ID]; !ok || r.Remaining < have {
			out[r.ID] = r.Remaining // the least that is said anywhere
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
	maps.Copy(out, w.committed)
	return out
}

// slot is what a node of the offer takes of which reservation, or of the commitment that covers it first; nothing where
// the offer is to be had in any number.
func (o *poolOffering) slot() (id string, amount int64) {
	switch {
	case o.Reservation != nil:
		return o.Reservation.ID, 1
	case len(o.Paid) > 0:
		return o.Paid[0].Commitment, o.Paid[0].Amount
	}
	return "", 0
}

func reservationOf(c cluster.Claim) string {
	r, _ := c.Requirements.Get(instancetypes.LabelReservationID)
	id, _ := r.Single()
	return id
}

// openReserved makes nodes in capacity that is reserved, and so paid for, before any other of the pools: each time
// those that would save most.
func (op *nodeOpener) openReserved(pools []*pool, lots []*podBatch) {
	var offers []*poolOffering
	for _, p := range pools {
		if p.mayBeOneType {
			offers = append(offers, p.reserved...)
		}
	}
	if len(offers) == 0 {
		return
	}
	for _, l := range lots {
		if l.value = op.a.w.catalog.minPriceShare(l.view, l.pins); l.value >= noPrice {
			l.value = dear
		}
	}
	for !op.a.used.atMost() {
		var best *candidate
		var takes []batchTake
		most := 0.0
		for i, o := range offers {
			p := o.model.pool
			if op.a.used.spotAllowance(o, 1) == 0 || op.a.used.exceedsLimits(p, o.model.typ.Capacity) {
				continue
			}
			c := op.newCandidate(i, o, lots)
			if t, value := op.fillNode(c); value > most {
				best, takes, most = c, t, value
			}
		}
		if best == nil {
			return
		}
		if n, _ := op.a.openCopies(best.offer, takes, math.MaxInt32); n == 0 {
			return
		}
	}
}

// slotsFor is how many pods of the view, were they alone, the capacity reservations could take where the pins tie them:
// on nodes to make, and on those that were made in them before.
func (pk *packing) slotsFor(v *relaxedPod, pins []domainPin) int {
	if pk.roomOnly || v.kind.stays {
		return 0
	}
	adm := pk.a.w.admissions.pinnedAdmission(v.admit, pins)
	each := math.MaxInt32 // on one node
	if !v.hasHostAffinity() {
		each = pk.a.w.topology.maxPodsByHostRules(v, hostSite{count: noneLeft, anti: noneLeft, total: pk.a.total})
	}
	byID := map[string]int{} // several pools may use the same reservation
	for _, p := range pk.a.w.catalog.pools {
		if !p.mayBeOneType {
			continue
		}
		for _, o := range p.reserved {
			if nodes := pk.a.used.spotAllowance(o, math.MaxInt32); nodes > 0 && adm.firstAlternative(o) >= 0 &&
				!pk.a.used.exceedsLimits(p, o.model.typ.Capacity) {
				byID[o.Reservation.ID] = max(byID[o.Reservation.ID],
					min(nodes*min(each, fitCount(v.kind.need, o.room)), math.MaxInt32))
			}
		}
	}
	n := 0
	for _, pods := range byID { // the sum is the same in any order
		n += pods
	}
	for _, b := range pk.a.bins {
		if b.offer != nil && b.offer.Reservation != nil && adm.firstAlternative(b.offer) >= 0 {
			n += min(fitCount(v.kind.need, b.room), pk.a.w.topology.maxPodsByHostRules(v, pk.a.siteOf(b)))
		}
	}
	return n
}

// forSome reports whether a node for a pod of the view is for sale, or reserved.
func (cat *catalog) forSome(v *relaxedPod) bool {
	return cat.minPriceShare(v, nil) < noPrice || slices.ContainsFunc(cat.pools,
		func(p *pool) bool { return p.reserves(v.kind, v.admit) })
}

// reserves reports whether the pool uses a capacity reservation that can take a pod of the kind, were it alone.
func (p *pool) reserves(k *podClass, admit *nodeAdmission) bool {
	return p.mayBeOneType && slices.ContainsFunc(p.reserved,
		func(o *poolOffering) bool { return fitCount(k.need, o.room) > 0 && admit.firstAlternative(o) >= 0 })
}

// dear is what a pod is worth, in USD per hour, that only reserved capacity can take.
const dear = 1e6

// limitedOpening is a new node in reserved capacity or of a type that a commitment covers: it can be nothing else, and
// what a commitment covers is covered with one of the values only that the type leaves open.
func limitedOpening(b *bin, set requirements.Set) plannedNode {
	for _, r := range b.open.All() {
		if v, own := b.offer.Label(r.Key); own {
			set = set.And(requirements.Of(r.Key, v))
		}
	}
	if r := b.offer.Reservation; r != nil {
		set = set.And(requirements.Of(instancetypes.LabelReservationID, r.ID))
	}
	return plannedNode{bin: b, set: b.low.applyTo(set), choice: b.offer, opts: onlyOption(b.offer)}
}

// onlyOption is the offer as all that may be launched.
func onlyOption(o *poolOffering) []typeOption {
	return []typeOption{{model: o.model, offers: []*poolOffering{o}, best: o}}
}

// onlyReserved reports whether the offers are all reserved, so that only other pods can be in the way.
func onlyReserved(offers []*poolOffering) bool {
	return !slices.ContainsFunc(offers, func(o *poolOffering) bool { return !o.Limited() })
}
