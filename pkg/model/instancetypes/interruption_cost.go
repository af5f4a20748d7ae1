package instancetypes

import (
	"math"

	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/model/spotpools"
)

// InterruptionCost is what says how much interruptions of spot nodes are expected to cost. Nobody bills that: it is
// added to prices where they are compared. The zero value adds nothing.
type InterruptionCost struct {
	PodUSD float64        // what it costs that one pod is moved by an interruption
	Pod    resources.List // what an ordinary pod asks for
}

// PodsOn is how many ordinary pods a full node of the type has, at least one.
func (c InterruptionCost) PodsOn(t Type) float64 {
	n := math.Inf(1)
	if c.Pod.CPU > 0 {
		n = min(n, float64(t.Allocatable.CPU)/float64(c.Pod.CPU))
	}
	if c.Pod.Memory > 0 {
		n = min(n, float64(t.Allocatable.Memory)/float64(c.Pod.Memory))
	}
	if t.MaxPods > 0 {
		n = min(n, float64(t.MaxPods))
	}
	if math.IsInf(n, 1) {
		return 1
	}
	return max(1, n)
}

// AddInterruptionCosts is the types with the expected cost of interruptions in the price of each spot offering whose
// price is known: the hazard of its pool times the pods on a full node times what moving one costs. RiskUSD of an
// offering says how much of its price that is.
func (c Catalog) AddInterruptionCosts(types []Type, cost InterruptionCost) []Type {
	if !(cost.PodUSD > 0) || c.Spot == nil {
		return types
	}
	hazards := spotpools.EstimateHazards(*c.Spot)
	for i := range types {
		t := &types[i]
		usd := cost.PodsOn(*t) * cost.PodUSD
		for k := range t.Offerings {
			o := &t.Offerings[k]
			if o.CapacityType != Spot {
				continue
			}
			o.Hazard = hazards.Of(spotpools.Pool{Type: o.Type, Zone: o.Zone})
			o.RiskUSD = usd * o.Hazard
			if o.PriceKnown() && (o.Price > 0 || o.Available) {
				o.Price += o.RiskUSD
			}
		}
		SortOfferings(t.Offerings)
	}
	return types
}

// BilledUSD is the price without what interruptions are expected to cost.
func (o Offering) BilledUSD() float64 {
	if o.RiskUSD == 0 {
		return o.Price
	}
	return o.Price - o.RiskUSD
}
