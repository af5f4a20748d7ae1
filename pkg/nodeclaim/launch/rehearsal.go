package launch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"joiner.sh/pkg/model/instancetypes"
)

// DryRunOrder is an order like those that launches with the class will place, of one instance type, on-demand, in every
// subnet where it is sold: EC2 is asked whether it would take it. Whether the class is ready does not count; the types
// are to be without marks of what is sold out. The type is the cheapest plain one that the claim allows, else the
// cheapest one. found is false when the class has no type at all. The error is a *bootstrap.Error when no user data can
// be made.
func DryRunOrder(in Input) (o Order, found bool, err error) {
	t, found := rehearsalType(in)
	if !found {
		return Order{}, false, nil
	}
	o = Order{ClaimName: in.Claim.Name, ClaimUID: in.Claim.UID, CapacityType: instancetypes.OnDemand,
		Strategy: allocationStrategy(instancetypes.OnDemand, false)}
	tags := staticTags(in)
	o.Tags, o.InstanceTags = sortedTags(tags), sortedTags(claimTags(in, tags))
	template, err := newTemplate(in, o, templateGroup{image: t.ImageID, maxPods: t.MaxPods, reserved: t.Reserved})
	if err != nil {
		return Order{}, true, err
	}
	for _, f := range t.Offerings {
		for _, s := range in.Class.Status.Subnets {
			if f.CapacityType == instancetypes.OnDemand && f.Available && f.Zone == s.Zone {
				template.Overrides = append(template.Overrides,
					Override{Offer: f.Offer, SubnetID: s.ID, ImageID: t.ImageID, Price: f.Price})
			}
		}
	}
	slices.SortFunc(template.Overrides, func(a, b Override) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.SubnetID, b.SubnetID))
	})
	o.Templates = []Template{template}
	return o, true, nil
}

// rehearsalType picks the type: what the claim allows and is plain before the rest, then by price and name.
func rehearsalType(in Input) (*instancetypes.Type, bool) {
	var best *instancetypes.Type
	var rank [2]int
	var price float64
	for i := range in.Types {
		t := &in.Types[i]
		usd := rehearsalPrice(t)
		if usd <= 0 {
			continue
		}
		r := [2]int{}
		if !t.Requirements.Intersects(in.Claim.Requirements) {
			r[0] = 1
		}
		if isExotic(t) {
			r[1] = 1
		}
		if best == nil || cmp.Or(cmp.Compare(r[0], rank[0]), cmp.Compare(r[1], rank[1]), cmp.Compare(usd, price),
			cmp.Compare(t.Name, best.Name)) < 0 {
			best, rank, price = t, r, usd
		}
	}
	return best, best != nil
}

// rehearsalPrice is what the type costs on demand, 0 when the class cannot have it so.
func rehearsalPrice(t *instancetypes.Type) float64 {
	for _, o := range t.Offerings {
		if o.CapacityType == instancetypes.OnDemand && o.Available {
			return o.Price
		}
	}
	return 0
}

// UnusableReason says why no instance type can be launched with the class whatever the market says, the commonest
// reasons first; empty when one can, or when there are no types to tell by.
func UnusableReason(types []instancetypes.Type) string {
	count := map[string]int{}
	for i := range types {
		why := ""
		for _, o := range types[i].Offerings {
			if o.Available || !o.PriceKnown() || o.Reservation != nil {
				return ""
			}
			if o.Why != "" && !strings.HasPrefix(o.Why, "not sold in ") {
				why = o.Why
			}
		}
		if why != "" {
			count[why]++
		}
	}
	reasons := slices.SortedFunc(maps.Keys(count),
		func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	for i, r := range reasons {
		reasons[i] = fmt.Sprintf("%s (%d types)", r, count[r])
	}
	return strings.Join(reasons[:min(len(reasons), 3)], "; ")
}

// RefusedError says that EC2 would not take an order, whatever the capacity.
type RefusedError struct {
	Call    string // CreateLaunchTemplate, CreateFleet or RunInstances
	Code    string
	Message string // of EC2
}

// Error is the call, the code and the message.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s: %s", e.Call, e.Code, e.Message) }
