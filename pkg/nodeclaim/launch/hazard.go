package launch

import (
	"cmp"
	"slices"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
)

// What is left of a spot request when pools are left out of it.
const (
	// muchMore is how many times the median hazard of the pools a pool may have before it is left out.
	muchMore = 2
	// noticeable is which part of its price the cost of interruptions of a pool must be above that of the median.
	noticeable = 0.005
	// leastPools and leastTypes stay in a request whatever their hazards, and a third of the pools it began with.
	leastPools = 12
	leastTypes = 6
	leastPart  = 3
	// cheapPart is which part of the pools, the cheapest with the cost of their interruptions, stay in any case.
	cheapPart = 8
)

// LeftOut is a spot pool that a request leaves out for its hazard.
type LeftOut struct {
	instancetypes.Offering
	Median float64 // hazard of the request's pools
}

// withoutHazardous leaves spot pools out that are interrupted much more often than the others, the worst first, as long
// as EC2 has enough to choose from. Candidates whose pools were not learned stay as they are.
func withoutHazardous(cs []candidate) (out []candidate, left []LeftOut) {
	pools, perType := spotPools(cs)
	if len(pools) == 0 || pools[len(pools)-1].Hazard <= 0 {
		return cs, nil
	}
	stay := min(max(leastPools, (len(pools)+leastPart-1)/leastPart), len(pools))
	median := pools[len(pools)/2]
	worth := priceOfCheapest(pools, max(1, len(pools)/cheapPart))
	dropped := map[instancetypes.Offer]bool{}
	for _, o := range slices.Backward(pools) {
		excess := o.RiskUSD * (1 - median.Hazard/o.Hazard)
		if len(pools)-len(dropped) <= stay || o.Hazard < muchMore*median.Hazard || excess < noticeable*o.BilledUSD() {
			break
		}
		if o.Price < worth { // cheap enough to be interrupted
			continue
		}
		if perType[o.Type] == 1 && len(perType) <= leastTypes {
			continue
		}
		if perType[o.Type]--; perType[o.Type] == 0 {
			delete(perType, o.Type)
		}
		dropped[o.Offer] = true
		left = append(left, LeftOut{o, median.Hazard})
	}
	if len(dropped) == 0 {
		return cs, nil
	}
	for _, c := range cs {
		c.offers = slices.DeleteFunc(slices.Clone(c.offers),
			func(o instancetypes.Offering) bool { return dropped[o.Offer] })
		if len(c.offers) > 0 {
			out = append(out, c)
		}
	}
	return out, left
}

// priceOfCheapest is what the n-th cheapest of the pools costs, interruptions included.
func priceOfCheapest(pools []instancetypes.Offering, n int) float64 {
	var prices []float64
	for _, o := range pools {
		prices = append(prices, o.Price)
	}
	slices.Sort(prices)
	return prices[n-1]
}

// spotPools are the spot offers of the candidates, the safest first, and how many each type has.
func spotPools(cs []candidate) (pools []instancetypes.Offering, perType map[string]int) {
	perType = map[string]int{}
	for _, c := range cs {
		for _, o := range c.offers {
			if o.CapacityType == instancetypes.Spot {
				pools = append(pools, o)
				perType[o.Type]++
			}
		}
	}
	slices.SortFunc(pools, func(a, b instancetypes.Offering) int {
		return cmp.Or(cmp.Compare(a.Hazard, b.Hazard), cmp.Compare(a.Price, b.Price), cmp.Compare(a.Type, b.Type),
			cmp.Compare(a.Zone, b.Zone))
	})
	return pools, perType
}

// HazardousPools are the spot pools that a request for any node of the requirements leaves out, the worst first.
func HazardousPools(types []instancetypes.Type, reqs requirements.Set) []LeftOut {
	var cs []candidate
	for i := range types {
		c := candidate{t: &types[i]}
		for _, o := range types[i].Offerings {
			if o.Available && o.Meets(reqs) && types[i].Requirements.Intersects(reqs) {
				c.offers = append(c.offers, o)
			}
		}
		if len(c.offers) > 0 {
			cs = append(cs, c)
		}
	}
	_, left := withoutHazardous(withoutExotic(cs))
	return left
}
