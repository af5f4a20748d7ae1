package instancetypes

import (
	"fmt"
	"strings"
)

// How far figures may be from those of the built-in catalog, as a factor, and what no type exceeds.
const (
	tenfold      = 10
	leastSpot    = 100 // a spot price may be this much below the on-demand price
	maxVCPU      = 10_000
	maxMemoryMiB = 1 << 28 // 256 TiB
	maxPrice     = 10_000  // USD per hour
)

// Plausible returns the catalog without the types of which a figure cannot be true, and says which and why: whoever
// writes prices decides what is bought. A figure must be in its range, and within a factor of ten of what the built-in
// catalog says of the type. Prices in another currency are not compared.
func (c Catalog) Plausible(builtIn Catalog) (Catalog, []string) {
	var out []Facts
	var odd []string
	foreign := strings.HasPrefix(c.Region, "cn-") != strings.HasPrefix(builtIn.Region, "cn-")
	for i := range c.Types {
		f := &c.Types[i]
		known, found := builtIn.Find(f.Name)
		why := f.outOfRange()
		if why == "" && found {
			why = f.unlike(&known, !foreign)
		}
		if why != "" {
			odd = append(odd, f.Name+": "+why)
			continue
		}
		out = append(out, *f)
	}
	c.Types = out
	return c, odd
}

// outOfRange says which figure no instance type has, empty where all are in range. An on-demand price of 0 is not known.
func (f *Facts) outOfRange() string {
	switch {
	case f.VCPU <= 0 || f.VCPU > maxVCPU:
		return fmt.Sprintf("%d vCPUs", f.VCPU)
	case f.MemoryMiB <= 0 || f.MemoryMiB > maxMemoryMiB:
		return fmt.Sprintf("%d MiB of memory", f.MemoryMiB)
	case !(f.OnDemandUSD >= 0 && f.OnDemandUSD <= maxPrice):
		return fmt.Sprintf("an on-demand price of %v USD/h", f.OnDemandUSD)
	}
	for _, zone := range f.Zones {
		if usd, sold := f.SpotUSD[zone]; sold && !(usd > 0 && usd <= maxPrice) {
			return fmt.Sprintf("a spot price of %v USD/h in %s", usd, zone)
		}
	}
	return ""
}

// unlike says which figure is far from what is known of the type, empty where none is.
func (f *Facts) unlike(known *Facts, prices bool) string {
	far := func(a, b, below float64) bool { return a > 0 && b > 0 && (a > b*tenfold || a < b/below) }
	switch {
	case far(float64(f.VCPU), float64(known.VCPU), tenfold):
		return fmt.Sprintf("%d vCPUs, the built-in catalog says %d", f.VCPU, known.VCPU)
	case far(float64(f.MemoryMiB), float64(known.MemoryMiB), tenfold):
		return fmt.Sprintf("%d MiB of memory, the built-in catalog says %d", f.MemoryMiB, known.MemoryMiB)
	case !prices:
		return ""
	case far(f.OnDemandUSD, known.OnDemandUSD, tenfold):
		return fmt.Sprintf("an on-demand price of %v USD/h, the built-in catalog says %v", f.OnDemandUSD,
			known.OnDemandUSD)
	}
	for _, zone := range f.Zones {
		if far(f.SpotUSD[zone], known.OnDemandUSD, leastSpot) {
			return fmt.Sprintf("a spot price of %v USD/h in %s, the built-in catalog says %v on demand",
				f.SpotUSD[zone], zone, known.OnDemandUSD)
		}
	}
	return ""
}
