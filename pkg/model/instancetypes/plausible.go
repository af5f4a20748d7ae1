package instancetypes

import (
	"fmt"
	"maps"
	"slices"
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

// Plausible returns the catalog with figures in place of those that cannot be true, and says which and why: whoever
// writes prices decides what is bought. A figure must be in its range, and within a factor of ten of what the built-in
// catalog says of the type, which holds otherwise. A spot price that is not becomes the on-demand price, the most that
// spot costs as a rule. A type whose vCPUs or memory cannot be true is left out where the built-in catalog does not
// know it. Prices in another currency are not compared.
func (c Catalog) Plausible(builtIn Catalog) (Catalog, []string) {
	var out []Facts
	var odd []string
	foreign := strings.HasPrefix(c.Region, "cn-") != strings.HasPrefix(builtIn.Region, "cn-")
	for _, f := range c.Types {
		known, _ := builtIn.Find(f.Name)
		if foreign {
			known.OnDemandUSD = 0
		}
		why := slices.Concat(f.mendSize(&known), f.mendPrices(known.OnDemandUSD))
		if len(why) > 0 {
			odd = append(odd, f.Name+": "+strings.Join(why, ", "))
		}
		if f.VCPU > 0 && f.MemoryMiB > 0 {
			out = append(out, f)
		}
	}
	c.Types = out
	return c, append(odd, c.dropOddExtras()...)
}

// dropOddExtras leaves out what makes nodes cheaper than their prices and cannot be true: commitments, what runs beside
// the cluster, prices of volumes, spot pools. It says of which there was any.
func (c *Catalog) dropOddExtras() (odd []string) {
	note := func(what string, before, after int) {
		if before != after {
			odd = append(odd, fmt.Sprintf("%d of %d %s", before-after, before, what))
		}
	}
	commitments := slices.DeleteFunc(slices.Clone(c.Commitments), func(m Commitment) bool {
		for _, usd := range m.Rates {
			if !(usd > 0 && usd <= maxPrice) {
				return true
			}
		}
		return m.Room < 0
	})
	note("commitments", len(c.Commitments), len(commitments))
	elsewhere := slices.DeleteFunc(slices.Clone(c.Elsewhere), func(r RunningCount) bool { return r.Count < 0 })
	note("counts of what runs elsewhere", len(c.Elsewhere), len(elsewhere))
	disks := maps.Clone(c.DiskPrices)
	maps.DeleteFunc(disks, func(_ string, p DiskPrice) bool {
		return isOdd(p.GiB, 0, maxPrice, tenfold) || isOdd(p.IOPS, 0, maxPrice, tenfold) ||
			isOdd(p.MiBps, 0, maxPrice, tenfold)
	})
	note("prices of volumes", len(c.DiskPrices), len(disks))
	c.Commitments, c.Elsewhere, c.DiskPrices = commitments, elsewhere, disks
	return odd
}

// mendSize puts what is known, 0 for nothing, in place of vCPUs and memory that cannot be true. It says which those
// are.
func (f *Facts) mendSize(known *Facts) []string {
	var why []string
	if isOdd(float64(f.VCPU), float64(known.VCPU), maxVCPU, tenfold) || f.VCPU == 0 {
		why = append(why, fmt.Sprintf("%d vCPUs, the built-in catalog says %d", f.VCPU, known.VCPU))
		f.VCPU = known.VCPU
	}
	if isOdd(float64(f.MemoryMiB), float64(known.MemoryMiB), maxMemoryMiB, tenfold) || f.MemoryMiB == 0 {
		why = append(why, fmt.Sprintf("%d MiB of memory, the built-in catalog says %d", f.MemoryMiB, known.MemoryMiB))
		f.MemoryMiB = known.MemoryMiB
	}
	return why
}

// mendPrices puts the known on-demand price, 0 for none, in place of one that cannot be true, and the on-demand price
// in place of such spot prices. It says which those are. An on-demand price of 0 is not known.
func (f *Facts) mendPrices(known float64) []string {
	var why []string
	if isOdd(f.OnDemandUSD, known, maxPrice, tenfold) {
		why = append(why, fmt.Sprintf("an on-demand price of %v USD/h, the built-in catalog says %v",
			f.OnDemandUSD, known))
		f.OnDemandUSD = known
	}
	f.SpotUSD = maps.Clone(f.SpotUSD)
	for _, zone := range slices.Sorted(maps.Keys(f.SpotUSD)) {
		usd := f.SpotUSD[zone]
		if usd != 0 && !isOdd(usd, known, maxPrice, leastSpot) {
			continue
		}
		why = append(why, fmt.Sprintf("a spot price of %v USD/h in %s, on demand it is %v", usd, zone, f.OnDemandUSD))
		if f.SpotUSD[zone] = f.OnDemandUSD; f.OnDemandUSD == 0 {
			delete(f.SpotUSD, zone)
		}
	}
	return why
}

// isOdd reports whether a figure is out of its range, or more than tenfold or less than the part below of the known
// one. Figures of 0 are not known.
func isOdd(figure, known, most, below float64) bool {
	inRange := figure >= 0 && figure <= most // a NaN is not
	return !inRange || figure > 0 && known > 0 && (figure > known*tenfold || figure < known/below)
}
