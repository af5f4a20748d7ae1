package sim

import (
	"slices"
	"time"

	"joiner.sh/pkg/model/instancetypes"
)

// catalog holds what EC2 sells to everybody.
type catalog struct {
	market instancetypes.Catalog
	types  map[string]instancetypes.Type
}

func newCatalog(market instancetypes.Catalog) *catalog {
	c := &catalog{market, map[string]instancetypes.Type{}}
	class := instancetypes.Class{Name: "default", Ready: true, Family: instancetypes.AL2023, ZoneIDs: market.Zones,
		MemoryOverhead: memoryOverhead, Images: []instancetypes.Image{{ID: "ami-1"}}}
	for _, t := range instancetypes.ResolveTypes(market, class, nil, time.Now()) {
		c.types[t.Name] = t
	}
	return c
}

// priceOf returns the price of the instance, in USD per hour: EC2 bills from running on.
func (c *catalog) priceOf(m *machine) (usd float64) {
	if m.State == "pending" {
		return 0
	}
	for _, o := range c.types[m.Type].Offerings {
		if o.Zone == m.Zone && o.CapacityType == m.CapacityType {
			usd += o.Price
		}
	}
	return usd
}

func (c *catalog) zoneNames() []string {
	var out []string
	for _, t := range c.market.Types {
		for _, z := range t.Zones {
			if !slices.Contains(out, z) {
				out = append(out, z)
			}
		}
	}
	slices.Sort(out)
	return out
}

func (c *catalog) isOffered(t instancetypes.Type, zone string) bool {
	return slices.ContainsFunc(t.Offerings, func(o instancetypes.Offering) bool { return zone == "" || o.Zone == zone })
}
