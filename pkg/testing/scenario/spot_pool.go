package scenario

import (
	"slices"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/spotpools"
)

// addSpotPool reads "spot-pool m5.large zone=a hours=100 interruptions=40": what the cluster saw of a spot pool.
func (w *World) addSpotPool(d directive) {
	c := &w.Snapshot.Catalog
	if c.Spot == nil {
		c.Spot = &spotpools.Summary{At: w.Snapshot.Now}
	}
	c.Spot.Own = append(c.Spot.Own, spotpools.Cell{Pool: spotpools.Pool{Type: d.name(), Zone: d.str("zone")},
		Evidence: spotpools.Evidence{Hours: float64(d.num("hours", 0)), Interruptions: float64(d.num("interruptions", 0))}})
}

// withInterruptionCosts is the types with what interruptions are expected to cost. Those given are not changed.
func (w *World) withInterruptionCosts(types []instancetypes.Type) []instancetypes.Type {
	cost := w.Snapshot.InterruptionCost()
	if cost.PodUSD <= 0 || w.Snapshot.Catalog.Spot == nil {
		return types
	}
	types = slices.Clone(types)
	for i := range types {
		types[i].Offerings = slices.Clone(types[i].Offerings)
	}
	return w.Snapshot.Catalog.AddInterruptionCosts(types, cost)
}
