package search

import (
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/scheduling/packing"
)

// capacityTypePrice returns the cost of the new nodes of a capacity type.
func capacityTypePrice(s *packing.Solution, capacityType string) float64 {
	sum := 0.0
	for _, b := range s.Bins {
		if b.Offering != nil && b.Offering.CapacityType == capacityType {
			sum += b.Offering.Price
		}
	}
	return sum
}

// diversifySpot is the solution again with less in one pool of capacity, where it has more than that pool's share in
// it: with other types, which may be cheaper than the same type elsewhere. What comes out must place as many pods, and
// as many of them on spot; else diversifyLaunches finds other zones and types for the nodes that there are.
func diversifySpot(p *packing.Problem, s *packing.Solution, st pricedStrategy) *packing.Solution {
	use := s.SpotUse()
	if !use.AnyExceedsShare() {
		return s
	}
	st.Guide, st.SpotCeiling = s.Strategy.Guide, use.MostInPool()
	again := p.Pack(st.Strategy)
	again.Used.SpotCeiling = 0
	if again.Waiting() > s.Waiting() ||
		capacityTypePrice(again, instancetypes.OnDemand) > capacityTypePrice(s, instancetypes.OnDemand) {
		return s
	}
	return again
}
