package metrics

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// FleetMetrics returns the number of the nodes and what they cost in USD per hour, together and by pool and capacity
// type. It returns the age of the catalog that says so too. NodeOverlays do not change what EC2 charges, so they do not
// count. A claim without an instance costs nothing yet; an instance whose price nobody knows counts at the on-demand
// price of its type, or 0 if there is none.
func FleetMetrics(claims []cluster.Claim, c instancetypes.Catalog, now time.Time) []Record {
	type group struct{ pool, capacityType string }
	nodes, cost := map[group]int{}, map[group]float64{}
	all, price := 0, 0.0
	for _, claim := range claims {
		if claim.ProviderID == "" {
			continue
		}
		g := group{claim.Pool, claim.Labels[instancetypes.LabelCapacityType]}
		usd := claimPrice(c, claim)
		nodes[g]++
		cost[g] += usd
		all++
		price += usd
	}
	together := Record{Values: []Value{Gauge(NodeCount, float64(all)), Gauge(PricePerHour, price)}}
	if !c.Time.IsZero() {
		together.Values = append(together.Values, Durations(CatalogAge, now.Sub(c.Time)))
	}
	out := []Record{together}
	for _, g := range slices.SortedFunc(maps.Keys(nodes), func(a, b group) int {
		return cmp.Or(cmp.Compare(a.pool, b.pool), cmp.Compare(a.capacityType, b.capacityType))
	}) {
		out = append(out, Record{By: []Tag{{"nodepool", g.pool}, {"capacity_type", g.capacityType}},
			Values: []Value{Gauge(PoolNodes, float64(nodes[g])), Gauge(PoolCost, cost[g])}})
	}
	return out
}

// claimPrice returns what EC2 charges for the claim's instance, in USD per hour.
func claimPrice(c instancetypes.Catalog, claim cluster.Claim) float64 {
	usd, _ := c.Charge(instancetypes.OfferingKeyOf(claim.Labels))
	return usd
}
