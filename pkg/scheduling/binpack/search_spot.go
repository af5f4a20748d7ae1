package binpack

import "joiner.sh/pkg/model/instancetypes"

const ()

// capacityTypePrice is what the new nodes of a capacity type cost.
func capacityTypePrice(a *solution, capacityType string) float64 {
	sum := 0.0
	for _, b := range a.bins {
		if b.Offer != nil && b.Offer.CapacityType == capacityType {
			sum += b.Offer.Price
		}
	}
	return sum
}

// diversifySpot is the solution again with less in one pool of capacity, where it has more than that pool's share in
// it: with other types, which may be cheaper than the same type elsewhere. What comes out must place as many pods, and
// as many of them on spot; else diversifyLaunches finds other zones and types for the nodes that there are.
func diversifySpot(w *problem, a *solution, st pricedStrategy) *solution {
	use := a.spotUse()
	if !use.AnyExceedsShare() {
		return a
	}
	st.guide, st.caps, st.spotCeiling = a.strategy.guide, a.strategy.caps, use.MostInPool()
	again := w.pack(st.strategy)
	again.used.spotCeiling = 0
	if again.waiting() > a.waiting() ||
		capacityTypePrice(again, instancetypes.OnDemand) > capacityTypePrice(a, instancetypes.OnDemand) {
		return a
	}
	return again
}
