package launch

import (
	"cmp"
	"maps"
	"strconv"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
)

// Launched holds what a launch writes into its claim.
type Launched struct {
	ProviderID  string            // aws:///zone/id
	ImageID     string            // AMI that it runs
	Labels      map[string]string // all that were not on the claim, or had another value
	Annotations map[string]string // of the order
	Capacity    resources.List    // of the type, as the node will have it
	Allocatable resources.List    // Capacity without what is reserved for the system
}

// LaunchResult tells what to write into the claim c, for which order o started, or had started before, the instance i
// of type t.
func LaunchResult(c cluster.Claim, o Order, t instancetypes.Type, i cluster.Instance) Launched {
	labels := t.Requirements.Labels()
	labels[instancetypes.LabelCapacityType] = i.CapacityType
	labels[instancetypes.LabelZone] = i.Zone
	labels[v1.LabelInstance] = i.ID
	if r, ok := t.Requirements.Get(instancetypes.LabelPartition); ok && len(r.Values) > 0 {
		labels[instancetypes.LabelPartition] = "" // EC2 chooses, and lifecycle asks which, see package lifecycle
	}
	for _, offered := range []string{instancetypes.LabelZoneID, instancetypes.LabelReservationID,
		instancetypes.LabelReservation, instancetypes.LabelInterruptible} {
		delete(labels, offered) // the type tells what it can have, the instance what it has
	}
	for _, f := range t.Offerings {
		if f.Zone == i.Zone && f.ZoneID != "" {
			labels[instancetypes.LabelZoneID] = f.ZoneID
		}
		if i.Reservation != "" && f.Reservation != nil && f.Reservation.ID == i.Reservation {
			maps.Copy(labels, reservationLabels(*f.Reservation))
		}
	}
	if i.Reservation != "" {
		labels[instancetypes.LabelReservationID] = i.Reservation // although its class may not select it any more
	}
	out := Launched{
		ProviderID: i.ProviderID(), ImageID: cmp.Or(i.ImageID, t.ImageID),
		Annotations: maps.Clone(o.Annotations), Capacity: t.Capacity, Allocatable: t.Allocatable,
	}
	if i.Partition > 0 {
		labels[instancetypes.LabelPartition] = strconv.Itoa(int(i.Partition))
	}
	efa := false
	for _, m := range o.Templates {
		labels[instancetypes.LabelTenancy] = m.Tenancy // one order has one tenancy
		if m.Partition > 0 {
			labels[instancetypes.LabelPartition] = strconv.Itoa(int(m.Partition))
		}
		for _, v := range m.Overrides {
			efa = efa || v.Type == i.Type && m.hasEFA()
		}
	}
	if !efa { // the type could, but no such interface was attached
		out.Capacity, out.Allocatable = out.Capacity.With(instancetypes.ResourceEFA, 0),
			out.Allocatable.With(instancetypes.ResourceEFA, 0)
	}
	maps.DeleteFunc(labels, func(k, v string) bool { have, ok := c.Labels[k]; return ok && have == v })
	out.Labels = labels
	return out
}
