package binpack

import (
	"fmt"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
)

// limitsPrice reports whether the pool bounds what its nodes cost.
func (p *pool) limitsPrice() bool { return slices.Contains(p.Limited, cluster.LimitUSD) }

// chargedType is the type of the model. In a pool that bounds the price it takes of that bound what the dearest of its
// offers costs that can be had now: a claim names a type with all of them, and the limit must hold whatever EC2 gives.
func (p *pool) chargedType(m *poolInstanceType) *instancetypes.Type {
	if !p.limitsPrice() {
		return m.typ
	}
	t, dearest := *m.typ, 0.0
	for _, o := range m.sells {
		if o.Available {
			dearest = max(dearest, o.Price)
		}
	}
	t.Capacity = t.Capacity.With(cluster.LimitUSD, cluster.MillionthsUSD(dearest))
	return &t
}

// overText tells that the pool has used so much of a limit.
func overText(p *pool, name string, used int64) string {
	if name == cluster.LimitUSD {
		return fmt.Sprintf("limit of %.4f USD/h would be exceeded: %.4f used", float64(p.Limits.Get(name))/1e6,
			float64(used)/1e6)
	}
	return fmt.Sprintf("limit %s %s would be exceeded: %s used", name, resources.Format(name, p.Limits.Get(name)),
		resources.Format(name, used))
}
