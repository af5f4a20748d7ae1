package launch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// dryRunTypes bounds the instance types that are asked about before a class counts as refused.
const dryRunTypes = 4

// DryRunOrders are orders like those that launches with the class will place, each of one instance type, on-demand: EC2
// is asked whether it would take one of them. Whether the class is ready does not count; the types are to be without
// marks of what is unavailable. The claims are one for each pool of the class; the input's own does not count. Their
// types come in turn, of different families if there are: the cheapest plain one that the claim allows, else the
// cheapest. The first order is for every subnet where its type is sold, the others for one, so that a refusal costs few
// calls. There is no order when the class has no type at all. The error is a *bootstrap.Error when no user data can be
// made.
func DryRunOrders(in Input, claims []cluster.Claim) (orders []Order, err error) {
	asked := map[string]bool{}
	for turn, misses := 0, 0; len(orders) < dryRunTypes && misses < len(claims); turn++ {
		in.Claim = claims[turn%len(claims)]
		t, found := rehearsalType(in, asked)
		if misses++; !found {
			continue
		}
		misses, asked[t.Name] = 0, true
		o, err := dryRunOrder(in, t)
		switch {
		case err != nil && len(orders) == 0:
			return nil, err
		case err != nil: // the pool's own labels and taints
			continue
		}
		if all := o.Templates[0].Overrides; len(orders) > 0 {
			o.Templates[0].Overrides = all[:min(len(all), 1)]
		}
		orders = append(orders, o)
	}
	return orders, nil
}

func familyOf(instanceType string) string {
	family, _, _ := strings.Cut(instanceType, ".")
	return family
}

func dryRunOrder(in Input, t *instancetypes.Type) (Order, error) {
	o := Order{ClaimName: in.Claim.Name, ClaimUID: in.Claim.UID, CapacityType: instancetypes.OnDemand,
		Strategy: allocationStrategy(instancetypes.OnDemand, false)}
	tags := staticTags(in)
	o.Tags, o.InstanceTags = sortedTags(tags), sortedTags(claimTags(in, tags))
	template, err := newTemplate(in, o, templateGroup{image: t.ImageID, maxPods: t.MaxPods, reserved: t.Reserved}, nil)
	if err != nil {
		return Order{}, err
	}
	for _, f := range t.Offerings {
		for _, s := range in.Class.Status.Subnets {
			if f.CapacityType == instancetypes.OnDemand && f.Available && f.Zone == s.Zone {
				template.Overrides = append(template.Overrides,
					Override{OfferingKey: f.OfferingKey, SubnetID: s.ID, ImageID: t.ImageID, Price: f.Price})
			}
		}
	}
	slices.SortFunc(template.Overrides, func(a, b Override) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.SubnetID, b.SubnetID))
	})
	o.Templates = []Template{template}
	return o, nil
}

// rehearsalType picks the type, of those that were not asked about: what the claim allows, is plain and is of another
// family before the rest, then by price and name. A further type is one that the claim allows.
func rehearsalType(in Input, asked map[string]bool) (best *instancetypes.Type, found bool) {
	families := map[string]bool{}
	for name := range asked {
		families[familyOf(name)] = true
	}
	rank := func(t *instancetypes.Type) (r int) {
		for i, worse := range []bool{families[familyOf(t.Name)], isExotic(t),
			!t.Requirements.Intersects(in.Claim.Requirements)} {
			if worse {
				r += 1 << i
			}
		}
		return r
	}
	for i := range in.Types {
		t := &in.Types[i]
		if rehearsalPrice(t) <= 0 || asked[t.Name] ||
			len(asked) > 0 && !t.Requirements.Intersects(in.Claim.Requirements) {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(rank(t), rank(best)), cmp.Compare(rehearsalPrice(t), rehearsalPrice(best)),
			cmp.Compare(t.Name, best.Name)) < 0 {
			best = t
		}
	}
	return best, best != nil
}

// rehearsalPrice returns the on-demand price of the type, in USD per hour, 0 when the class cannot have it so.
func rehearsalPrice(t *instancetypes.Type) float64 {
	o, _ := lists.Find(t.Offerings,
		func(o instancetypes.Offering) bool { return o.CapacityType == instancetypes.OnDemand && o.Available })
	return o.Price
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

// IsAboutType reports whether EC2 may take the same order of another instance type.
func (e *RefusedError) IsAboutType() bool {
	return e.Call == "RunInstances" && awserrors.IsAboutType(e.Code)
}

// Error is the call, the code and the message.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s: %s", e.Call, e.Code, e.Message) }
