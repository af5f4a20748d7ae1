package instancetypes

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// unavailableIndex finds the entry that covers an offering.
type unavailableIndex map[unavailableKey]string // why, by what the entry names

// unavailableKey identifies the offering and the scope that an entry names.
type unavailableKey struct {
	OfferingKey
	scope string
}

// indexUnavailable keeps the entries that still hold at the time now; of two on the same offerings the one that holds
// longer. Those about resources are left out.
func indexUnavailable(all []UnavailableOffering, now time.Time) unavailableIndex {
	x := make(unavailableIndex, len(all))
	until := make(map[unavailableKey]time.Time, len(all))
	for _, u := range all {
		is := unavailableKey{u.OfferingKey, u.Scope}
		if !now.Before(u.Until) || !u.Until.After(until[is]) || u.Resource != "" {
			continue
		}
		until[is] = u.Until
		what := "unavailable"
		switch {
		case u.Class() != "" && u.LeavesOut():
			what = fmt.Sprintf("%d nodes of the class in a row never became usable; it is left alone", u.Times)
		case u.Class() != "":
			what = "instances of the class end before they join; it is left alone"
		case u.RefusedForClass():
			what = "EC2 refuses it; it is left alone"
		case u.LeavesOut():
			what = fmt.Sprintf("%d of its nodes took none of the pods that they were bought for; it is left out", u.Times)
		}
		x[is] = fmt.Sprintf("%s until %s (%s)", what, u.Until.UTC().Format(time.RFC3339), u.Why)
	}
	return x
}

// unavailableReason says why the class cannot have the offering in the scope, empty when no entry covers it. Entries
// without a scope hold in every scope.
func (x unavailableIndex) unavailableReason(o OfferingKey, class, scope string) string {
	if len(x) == 0 {
		return ""
	}
	for _, k := range [4]OfferingKey{
		o,
		{CapacityType: o.CapacityType, Zone: o.Zone},
		{CapacityType: o.CapacityType, Type: o.Type},
		{CapacityType: o.CapacityType},
	} {
		for _, s := range [3]string{"", scope, class} {
			if w, ok := x[unavailableKey{k, s}]; ok {
				return w
			}
		}
	}
	return ""
}

// Why an offering cannot be had although it is sold, and nothing else is in the way.
const (
	spotPriceUnknown     = "spot price unknown"
	onDemandPriceUnknown = "on-demand price unknown"
)

// reservedDiscount makes a reserved instance, which is paid for already, cheaper than any other and keeps their order.
const reservedDiscount = 10_000_000

// listOfferings lists every zone of the region and every way in which the type is sold. refused, when not
// empty, says why the class cannot use any of them. Offerings of unknown price, which is 0, are last.
func (r *typeResolver) listOfferings(f *Facts, refused string) []Offering {
	var sold [2]string
	types, reserved := capacityTypes(f, sold[:0]), r.booked[f.Name]
	out := make([]Offering, 0, len(types)*len(r.zones)+len(reserved))
	for i := range r.zones {
		for _, c := range types {
			key := OfferingKey{CapacityType: c, Type: f.Name, Zone: r.zones[i].name}
			o := Offering{OfferingKey: key, ZoneID: r.zones[i].id}
			if c == Spot {
				o.Price = f.SpotUSD[o.Zone]
			} else {
				o.Price = f.OnDemandUSD
			}
			o.Why = cmp.Or(refused, r.refuseOffering(f, &r.zones[i], o))
			o.Available = o.Why == ""
			out = append(out, o)
		}
	}
	for _, res := range reserved {
		out = append(out, r.reservedOffering(f, res, refused))
	}
	SortOfferings(out)
	return out
}

func (r *typeResolver) refuseOffering(f *Facts, z *classZone, o Offering) string {
	switch {
	case !slices.Contains(f.Zones, z.name):
		return z.notSold
	case !z.hasSubnet:
		return z.noSubnet
	case z.full != "":
		return z.full
	}
	if why := r.unavailable.unavailableReason(o.OfferingKey, r.scope, r.placementGroup()); why != "" {
		return why
	}
	switch {
	case o.Price <= 0 && o.CapacityType == Spot:
		return spotPriceUnknown
	case o.Price <= 0:
		return onDemandPriceUnknown
	}
	return ""
}

// placementGroup is the placement group that everything is launched into, empty for none.
func (r *typeResolver) placementGroup() string {
	if r.class.Placement == nil {
		return ""
	}
	return r.class.Placement.ID
}

// reservedOffering returns the offering that a reservation of the class gives. Its price may be 0: it can be had
// although nobody knows what the type costs.
func (r *typeResolver) reservedOffering(f *Facts, res *Reservation, refused string) Offering {
	o := Offering{OfferingKey: OfferingKey{CapacityType: Reserved, Type: f.Name, Zone: res.Zone},
		Price: f.OnDemandUSD / reservedDiscount, Reservation: res}
	i := slices.IndexFunc(r.zones, func(z classZone) bool { return z.name == res.Zone })
	switch {
	case refused != "":
		o.Why = refused
	case i < 0:
		o.Why = "reservation " + res.ID + " is in " + res.Zone + ", which the region does not have"
	case !r.zones[i].hasSubnet:
		o.Why = r.zones[i].noSubnet
	case r.zones[i].full != "":
		o.Why = r.zones[i].full
	case res.Ending(r.now):
		o.Why = "reservation " + res.ID + " is about to end"
	case res.Remaining <= 0:
		o.Why = "reservation " + res.ID + " has no room left"
	default:
		o.Why = r.unavailable.unavailableReason(o.OfferingKey, r.scope, res.ID)
	}
	if i >= 0 {
		o.ZoneID = r.zones[i].id
	}
	o.Available = o.Why == ""
	return o
}
