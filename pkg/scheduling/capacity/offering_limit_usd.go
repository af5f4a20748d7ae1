package capacity

import (
	"fmt"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
)

// chargedType is the type of the model. In a pool that bounds the price it takes of that bound what the dearest of its
// offerings costs that can be had now: a claim names a type with all of them, and the limit must hold whatever EC2
// gives.
func (p *OfferingPool) chargedType(it *InstanceType) *instancetypes.Type {
	if !p.LimitsPrice() {
		return it.Type
	}
	t, dearest := *it.Type, 0.0
	for _, o := range it.Sells {
		if o.Available {
			dearest = max(dearest, o.Price)
		}
	}
	t.Capacity = t.Capacity.With(cluster.LimitUSD, cluster.MillionthsUSD(dearest))
	return &t
}

// LimitText tells that the pool has used so much of a limit.
func (p *OfferingPool) LimitText(name string, used int64) string {
	if name == cluster.LimitUSD {
		return fmt.Sprintf("limit of %.4f USD/h would be exceeded: %.4f used", cluster.USD(p.Limits.Get(name)),
			cluster.USD(used))
	}
	return fmt.Sprintf("limit %s %s would be exceeded: %s used", name, resources.Format(name, p.Limits.Get(name)),
		resources.Format(name, used))
}
