package capacity

import (
	"maps"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/scheduling/podclass"
)

// ReservationSlots returns the number of instances for which the capacity reservations have room, by their ids, beside
// what room the commitments have. Claims that are not launched yet and are bound to one reservation have taken theirs.
func (cat *Catalog) ReservationSlots(all []cluster.StateNode, committed map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for _, r := range cat.bookable {
		if have, ok := out[r.ID]; !ok || r.Remaining < have {
			out[r.ID] = r.Remaining // the least that is said anywhere
		}
	}
	for _, node := range all {
		if len(out) == 0 || node.Claim == nil || node.Claim.ProviderID != "" || node.Deleting() {
			continue
		}
		if id := reservationOf(*node.Claim); id != "" {
			out[id]--
		}
	}
	maps.Copy(out, committed)
	return out
}

// Slot returns what a node of the offering takes of its reservation, or else of the first commitment that covers it; ""
// where neither limits it.
func (o *Offering) Slot() (id string, amount int64) {
	switch {
	case o.Reservation != nil:
		return o.Reservation.ID, 1
	case len(o.Paid) > 0:
		return o.Paid[0].Commitment, o.Paid[0].Amount
	}
	return "", 0
}

// CoveringCommitment is the first commitment with room for the offering, and how many nodes it has room for.
func (o *Offering) CoveringCommitment(slots map[string]int64) (instancetypes.CommitmentDraw, int64) {
	for _, d := range o.Paid {
		if n := slots[d.Commitment] / d.Amount; n > 0 {
			return d, n
		}
	}
	return instancetypes.CommitmentDraw{}, 0
}

func reservationOf(c cluster.Claim) string {
	r, _ := c.Requirements.Get(instancetypes.LabelReservationID)
	id, _ := r.Single()
	return id
}

// sells reports whether the pool could make a node for a pod of the class, were it alone, that no reservation has.
func (p *OfferingPool) sells(class *podclass.Class, admit *podclass.Admission) bool {
	return !p.inflexible && !p.refuses(admit) && slices.ContainsFunc(p.Sale,
		func(o *Offering) bool {
			return DominantShare(class.Need, o.Room) <= 1 && o.FirstAlternative(admit) >= 0
		})
}

// reserves reports whether the pool uses a capacity reservation that can take a pod of the class, were it alone.
func (p *OfferingPool) reserves(class *podclass.Class, admit *podclass.Admission) bool {
	return p.MayBeOneType && slices.ContainsFunc(p.Reserved,
		func(o *Offering) bool { return FitCount(class.Need, o.Room) > 0 && o.FirstAlternative(admit) >= 0 })
}

// ForSome reports whether a node for a pod of the view is for sale, or reserved.
func (cat *Catalog) ForSome(pod *podclass.RelaxedPod) bool {
	return slices.ContainsFunc(cat.Pools, func(p *OfferingPool) bool {
		return p.sells(pod.Class, pod.Admission) || p.reserves(pod.Class, pod.Admission)
	})
}
