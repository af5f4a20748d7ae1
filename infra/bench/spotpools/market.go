package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/spotpools"
)

// scenario is a kind of market with a cluster in it.
type scenario struct {
	name, about string
	nodes       int     // that the cluster has on average
	median      float64 // hazard, interruptions per node hour
	// standard deviations of log10 of the hazard that zones, families and pools have
	zoneDex, familyDex, poolDex float64
	hours                       float64 // in which these forget what they were
}

func marketScenarios() []scenario {
	normal := scenario{name: "varied", about: "hazards over two orders of magnitude, half of it by zone and family",
		nodes: 100, median: 0.003, zoneDex: 0.35, familyDex: 0.3, poolDex: 0.3, hours: 120}
	fast, own, small, calm := normal, normal, normal, normal
	fast.name, fast.about, fast.hours = "restless", "as varied, but pools are others after 12 hours", 12
	own.name, own.about, own.zoneDex, own.familyDex, own.poolDex = "unrelated",
		"as varied, but zones and families tell nothing", 0, 0, 0.55
	small.name, small.about, small.nodes = "small", "as varied, with a cluster of 8 nodes", 8
	calm.name, calm.about, calm.median, calm.zoneDex, calm.familyDex, calm.poolDex = "calm",
		"all pools have the same low hazard", 0.0002, 0, 0, 0
	return []scenario{normal, fast, own, small, calm}
}

// Limits of hazards, as factors of the median: two orders of magnitude.
const mostApart = 10

// Of a pool.
const (
	depthNoise = 0.55 // standard deviation of log10 of the depth as EC2 knows it
	leastRoom  = 4    // nodes that a pool has room for
	mostRoom   = 16
	priceHours = 72 // in which prices forget what they were
	priceSpan  = 0.15
)

// walk is a number that wanders around 0 with standard deviation 1.
type walk struct{ at float64 }

func (w *walk) step(r *rand.Rand, hours float64) {
	keep := math.Exp(-1 / hours)
	w.at = keep*w.at + math.Sqrt(1-keep*keep)*r.NormFloat64()
}

// market is what EC2 sells, hour by hour.
type market struct {
	scenario
	r        *rand.Rand
	types    []instancetypes.Type // at the prices of now
	zones    map[string]*walk
	families map[string]*walk
	pools    []*pool // by type and zone
	byName   map[spotpools.Pool]*pool
	deep     float64 // depth from which a pool is among the deepest third
}

// pool is a spot pool as it is.
type pool struct {
	spotpools.Pool
	hazard float64 // interruptions per node hour
	depth  float64 // as EC2 knows it: log10, the higher the deeper
	price  float64
	room   int

	base              float64
	own, noise, worth walk
}

func newMarket(s scenario, seed uint64, types []instancetypes.Type) *market {
	m := &market{scenario: s, r: rand.New(rand.NewPCG(seed, 24)), types: types, zones: map[string]*walk{},
		families: map[string]*walk{}, byName: map[spotpools.Pool]*pool{}}
	for i := range types {
		for _, o := range types[i].Offerings {
			p := &pool{Pool: spotpools.Pool{Type: o.Type, Zone: o.Zone}, base: o.Price}
			p.own.at, p.noise.at, p.worth.at = m.r.NormFloat64(), m.r.NormFloat64(), m.r.NormFloat64()
			m.pools, m.byName[p.Pool] = append(m.pools, p), p
			if m.zones[p.Zone] == nil {
				m.zones[p.Zone] = &walk{m.r.NormFloat64()}
			}
			if m.families[p.Type] == nil {
				m.families[p.Type] = &walk{m.r.NormFloat64()}
			}
		}
	}
	m.updatePools()
	return m
}

// advanceHour moves the market by one hour.
func (m *market) advanceHour() {
	for _, w := range []map[string]*walk{m.zones, m.families} {
		keys := make([]string, 0, len(w))
		for k := range w {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			w[k].step(m.r, m.hours)
		}
	}
	for _, p := range m.pools {
		p.own.step(m.r, m.hours)
		p.noise.step(m.r, m.hours)
		p.worth.step(m.r, priceHours)
	}
	m.updatePools()
}

// updatePools says what the walks come to.
func (m *market) updatePools() {
	for _, p := range m.pools {
		dex := m.zoneDex*m.zones[p.Zone].at + m.familyDex*m.families[p.Type].at + m.poolDex*p.own.at
		dex = min(max(dex, -math.Log10(mostApart)), math.Log10(mostApart))
		p.hazard = m.median * math.Pow(10, dex)
		p.depth = -dex + depthNoise*p.noise.at
		p.price = p.base * math.Exp(priceSpan*p.worth.at)
		p.room = int(min(max(leastRoom*math.Pow(10, -dex/2), leastRoom), mostRoom))
	}
	depths := make([]float64, len(m.pools))
	for i, p := range m.pools {
		depths[i] = p.depth
	}
	slices.Sort(depths)
	m.deep = depths[len(depths)*2/3]
	for i := range m.types {
		for k := range m.types[i].Offerings {
			o := &m.types[i].Offerings[k]
			o.Price = m.byName[spotpools.Pool{Type: o.Type, Zone: o.Zone}].price
		}
		instancetypes.SortOfferings(m.types[i].Offerings)
	}
}

// typesOnSale are the types at the prices of now, for a decision to change.
func (m *market) typesOnSale() []instancetypes.Type {
	out := slices.Clone(m.types)
	for i := range out {
		out[i].Offerings = slices.Clone(out[i].Offerings)
	}
	return out
}

// typesFor are types of one size that are sold in the zones, in 24 families.
func typesFor(c instancetypes.Catalog, zones []string) ([]instancetypes.Type, error) {
	const families, parts = 24, 0.35
	class := instancetypes.Class{Name: className, Ready: true, Family: instancetypes.AL2023,
		ZoneIDs: map[string]string{},
		Images:  []instancetypes.Image{{ID: "ami-1"}}}
	for _, z := range zones {
		class.ZoneIDs[z] = z
	}
	var out []instancetypes.Type
	for _, f := range c.Types {
		if f.VCPU != 8 || f.OnDemandUSD <= 0 || f.OnDemandUSD > 0.55 || !f.CurrentGeneration || len(f.GPUs) > 0 ||
			!slices.Contains(f.Arch, "amd64") || len(out) == families {
			continue
		}
		one := instancetypes.Catalog{Region: c.Region, Zones: map[string]string{}, Types: []instancetypes.Facts{f}}
		one.Types[0].Zones, one.Types[0].SpotUSD = zones, map[string]float64{}
		for _, z := range zones {
			one.Zones[z], one.Types[0].SpotUSD[z] = z, f.OnDemandUSD*parts
		}
		t := instancetypes.ResolveTypes(one, class, nil, startTime())
		for i := range t {
			t[i].Offerings = slices.DeleteFunc(t[i].Offerings,
				func(o instancetypes.Offering) bool { return o.CapacityType != instancetypes.Spot })
			if len(t[i].Offerings) != len(zones) || !t[i].Offerings[0].Available {
				return nil, fmt.Errorf("%s is not sold: %s", f.Name, t[i].Offerings[0].Why)
			}
		}
		out = append(out, t...)
	}
	if len(out) < families {
		return nil, fmt.Errorf("%d types, want %d", len(out), families)
	}
	return out, nil
}
