package instancetypes

// BeyondUSD is more than any instance costs, in USD per hour.
const BeyondUSD = 1e6

// Charge returns what EC2 charges for the offering, in USD per hour, and whether that is known. Spot capacity whose
// price nobody knows counts at the on-demand price of its type. Reserved capacity is paid for whether it is used or
// not, and costs nothing more.
func (c Catalog) Charge(o OfferingKey) (usd float64, known bool) {
	facts, ok := c.Find(o.Type)
	switch {
	case o.CapacityType == Reserved:
		return 0, ok
	case !ok:
		return 0, false
	}
	if usd, known := facts.SpotUSD[o.Zone]; known && o.CapacityType == Spot {
		return usd, true
	}
	return facts.OnDemandUSD, facts.OnDemandUSD > 0
}
