package binpack

import (
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/resources"
)

// usage is what a solution uses of what there is a limit for.
type usage struct {
	pools  []poolUsage      // by pool
	slots  map[string]int64 // left in capacity reservations and commitments, by their ids
	opened int              // new nodes
	most   int              // of them in one pass, 0 for no limit

	spotCeiling int64 // most spot capacity, in millicores, in one pool of capacity; 0 for no limit
	spot        spotUsage
}

// standingUsage is what nodes use that exist or are on their way.
func (w *problem) standingUsage(spotCeiling int64) usage {
	u := usage{slots: w.reservationSlots(), most: w.s.Rules.MaxClaims, spotCeiling: spotCeiling}
	for _, p := range w.catalog.pools {
		u.pools = append(u.pools, p.used)
	}
	if spotCeiling > 0 {
		u.spot = w.nodes.standingSpot()
	}
	return u
}

// atMost reports whether the pass may make no more nodes.
func (u *usage) atMost() bool { return u.most > 0 && u.opened >= u.most }

// exceedsLimits reports whether one more node of this capacity would break a limit of the pool.
func (u *usage) exceedsLimits(p *pool, capacity resources.List) bool {
	return len(p.exceededLimits(u.pools[p.id], capacity)) > 0
}

// spotAllowance is how many more nodes of the offer, of at most so many, its reservation or commitment and the ceiling
// leave.
func (u *usage) spotAllowance(o *poolOffering, most int) int {
	if id, amount := o.slot(); amount > 0 {
		most = int(min(int64(most), max(0, u.slots[id])/amount))
	}
	cpu := o.model.typ.Capacity.CPU
	if u.spotCeiling == 0 || o.CapacityType != instancetypes.Spot || cpu <= 0 {
		return most
	}
	return int(min(int64(most), max(0, u.spotCeiling-u.spot.byPool[o.Offer])/cpu))
}
