package lifecycle

import (
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
)

// blockEnds reports whether the claim's capacity block is about to end: its pods leave before EC2 ends the instance.
func (x index) blockEnds(c cluster.Claim) bool {
	class, ok := x.s.ClassOf(c.Class)
	id := c.Labels[instancetypes.LabelReservationID]
	return ok && id != "" && slices.ContainsFunc(class.Reservations, func(r instancetypes.Reservation) bool {
		return r.ID == id && r.Kind == instancetypes.CapacityBlock && r.Ending(x.s.Now)
	})
}

// relabelOnDemand relabels a claim and its node whose instance lost its reservation, and so is on-demand now. The other
// way round does not happen: what is not launched into a reservation does not use one.
func (r registrar) relabelOnDemand(c cluster.Claim) []plan.Action {
	i, ok := r.instances[c.ProviderID]
	if !ok || i.CapacityType != instancetypes.OnDemand || c.Labels[v1.LabelCapacityType] != instancetypes.Reserved {
		return nil
	}
	return lists.Of(r.nodes[c.ProviderID], func(n cluster.Node) plan.Action {
		return plan.Action{Do: plan.Unreserve, Claim: c.Name, Node: n.Name,
			Why: "its instance is in no capacity reservation any more"}
	})
}
