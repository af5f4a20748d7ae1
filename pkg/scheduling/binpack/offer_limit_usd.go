package binpack

import (
	"math"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// millionths are the parts of a USD in which a limit on the price counts.
const millionths = 1e6

func inUSD(n int64) float64 { return float64(n) / millionths }

// MillionthsUSD is an amount in USD in the unit of cluster.LimitUSD, rounded up.
func MillionthsUSD(usd float64) int64 { return int64(math.Ceil(usd*millionths - 1e-6)) }

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
	t.Capacity = t.Capacity.With(cluster.LimitUSD, MillionthsUSD(dearest))
	return &t
}

// LimitCharge is what a host takes of its pool's bound on the price, in millionths of a USD per hour: the price of its
// offer, or while it is not launched that of the dearest which its claim may become.
func LimitCharge(h cluster.StateNode, types []instancetypes.Type) int64 {
	is, dearest := h.Offer(), 0.0
	for _, t := range types {
		switch {
		case is.Type == t.Name:
			for _, o := range t.Offerings {
				if o.Zone == is.Zone && o.CapacityType == is.CapacityType && len(o.Paid) == 0 {
					return MillionthsUSD(max(0, o.Price))
				}
			}
		case is.Type == "" && h.Claim != nil && h.Claim.Requirements.Has(labelType, t.Name):
			for _, o := range t.Offerings {
				if o.Available && o.Meets(h.Claim.Requirements) {
					dearest = max(dearest, o.Price)
				}
			}
		}
	}
	return MillionthsUSD(dearest)
}
