package cluster

import (
	"math"

	"joiner.sh/pkg/model/instancetypes"
)

// LimitUSD is the pseudo-resource of Limits that bounds what the pool's nodes cost, in millionths of a USD per hour.
const LimitUSD = "joiner.sh/usd-per-hour"

// MillionthsUSD is an amount in USD in the unit of LimitUSD, rounded up.
func MillionthsUSD(usd float64) int64 { return int64(math.Ceil(usd*1e6 - 1e-6)) }

// USD is an amount in the unit of LimitUSD in USD.
func USD(millionths int64) float64 { return float64(millionths) / 1e6 }

// LimitCharge returns the amount that the node takes of its pool's bound on the price, in millionths of a USD per hour.
// It is the price of its offering, or while it is not launched that of the dearest which its claim may become.
func (node StateNode) LimitCharge(types []instancetypes.Type) int64 {
	is, dearest := node.OfferingKey(), 0.0
	for _, t := range types {
		switch {
		case is.Type == t.Name:
			for _, o := range t.Offerings {
				if o.Zone == is.Zone && o.CapacityType == is.CapacityType && len(o.Paid) == 0 {
					return MillionthsUSD(max(0, o.Price))
				}
			}
		case is.Type == "" && node.Claim != nil && node.Claim.Requirements.Has(instancetypes.LabelType, t.Name):
			for _, o := range t.Offerings {
				if o.Available && o.Meets(node.Claim.Requirements) {
					dearest = max(dearest, o.Price)
				}
			}
		}
	}
	return MillionthsUSD(dearest)
}
