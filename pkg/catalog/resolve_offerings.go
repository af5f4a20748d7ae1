package catalog

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// marks finds the mark that covers an offer.
type marks map[Offer]string // why, by what the mark names

// newMarks keeps the marks that still hold at the time now; of two on the same offers the one that holds longer.
func newMarks(all []Mark, now time.Time) marks {
	m := make(marks, len(all))
	until := make(map[Offer]time.Time, len(all))
	for _, k := range all {
		if !now.Before(k.Until) || !k.Until.After(until[k.Offer]) {
			continue
		}
		until[k.Offer] = k.Until
		m[k.Offer] = fmt.Sprintf("sold out until %s (%s)", k.Until.UTC().Format(time.RFC3339), k.Why)
	}
	return m
}

// why says why the offer is sold out, empty when no mark covers it.
func (m marks) why(o Offer) string {
	if len(m) == 0 {
		return ""
	}
	for _, k := range [4]Offer{
		o,
		{CapacityType: o.CapacityType, Zone: o.Zone},
		{CapacityType: o.CapacityType, Type: o.Type},
		{CapacityType: o.CapacityType},
	} {
		if w, ok := m[k]; ok {
			return w
		}
	}
	return ""
}

// offerings lists every zone of the region and every way in which the type is sold (spec aws.md §2.7). refused, when not
// empty, says why the class cannot use any of them. Offerings of unknown price, which is 0, are last.
func (r *resolver) offerings(f *Facts, refused string) []Offering {
	var sold [2]string
	types := capacityTypes(f, sold[:0])
	out := make([]Offering, 0, len(types)*len(r.zones))
	for i := range r.zones {
		for _, c := range types {
			o := Offering{Offer: Offer{CapacityType: c, Type: f.Name, Zone: r.zones[i].name}, ZoneID: r.zones[i].id}
			if c == Spot {
				o.Price = f.SpotUSD[o.Zone]
			} else {
				o.Price = f.OnDemandUSD
			}
			o.Why = cmp.Or(refused, r.refuseOffer(f, &r.zones[i], o))
			o.Available = o.Why == ""
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b Offering) int {
		return cmp.Or(cmp.Compare(rank(a.Price), rank(b.Price)), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.CapacityType, b.CapacityType))
	})
	return out
}

// rank orders prices with the unknown one last.
func rank(price float64) float64 {
	if price <= 0 {
		return math.MaxFloat64
	}
	return price
}

func (r *resolver) refuseOffer(f *Facts, z *zone, o Offering) string {
	switch {
	case !slices.Contains(f.Zones, z.name):
		return z.notSold
	case !z.hasSubnet:
		return z.noSubnet
	case o.Price <= 0 && o.CapacityType == Spot:
		return "spot price unknown"
	case o.Price <= 0:
		return "on-demand price unknown"
	}
	return r.soldOut.why(o.Offer)
}
