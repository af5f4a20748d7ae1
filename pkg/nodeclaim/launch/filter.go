package launch

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/requirements"
)

// maxTypes bounds the instance types in one request.
const maxTypes = 60

// candidate is a type that may be launched and what of it may be bought.
type candidate struct {
	t         *instancetypes.Type
	offerings []instancetypes.Offering // by price; never empty
}

// filterTypes applies the launch-time filters in their order, each to what the one before left. The result is
// never empty.
func filterTypes(in Input) ([]candidate, error) {
	cs, why := filterAvailable(in)
	if len(cs) == 0 {
		return nil, &instancetypes.NoCapacityError{Why: why}
	}
	cs = intoReservations(cs)
	if !wantsMinValues(in.Claim.Requirements) {
		cs = withoutDearSpot(withoutExotic(cs))
	}
	cs = withSpareAddresses(in, cs)
	slices.SortStableFunc(cs, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.offerings[0].Price, b.offerings[0].Price), cmp.Compare(a.t.Name, b.t.Name))
	})
	cs = cs[:min(len(cs), maxTypes)]
	if why := fewerThanMinValues(in.Claim.Requirements, cs); why != "" && !in.RelaxMinValues {
		return nil, &instancetypes.NoCapacityError{Why: why}
	}
	return cs, nil
}

// filterAvailable keeps the types that the claim allows and that hold its requests, with the offerings that it allows
// and that can be bought. Otherwise it says why there are none.
func filterAvailable(in Input) (cs []candidate, why string) {
	subnets := subnetOfZone(in)
	var refused []string
	fits := 0
	for i := range in.Types {
		t := &in.Types[i]
		if !t.Requirements.Intersects(in.Claim.Requirements) || !in.Claim.Requests.FitsIn(t.Allocatable) {
			continue
		}
		fits++
		c := candidate{t: t}
		for _, o := range t.Offerings {
			switch {
			case !o.Meets(in.Claim.Requirements):
			case !o.Available:
				refused = append(refused, fmt.Sprintf("%s: %s", o.OfferingKey, o.Why))
			case subnets[o.Zone] == "":
				refused = append(refused, fmt.Sprintf("%s: the class has no subnet there that takes another node",
					o.OfferingKey))
			default:
				c.offerings = append(c.offerings, o)
			}
		}
		if len(c.offerings) > 0 {
			cs = append(cs, c)
		}
	}
	if fits == 0 {
		why = "no instance type of class " + in.Resolved.Name + " has what the claim requires"
		if !in.Claim.Requests.IsZero() {
			why += " and room for " + in.Claim.Requests.String()
		}
		return nil, why
	}
	return cs, noOfferingError(refused)
}

// noOfferingError says why no offering is left.
func noOfferingError(refused []string) string {
	const most = 3
	if len(refused) == 0 {
		return "no zone and capacity type that the claim allows is sold"
	}
	text := strings.Join(refused[:min(len(refused), most)], "; ")
	if len(refused) > most {
		text += fmt.Sprintf("; and %d more offerings", len(refused)-most)
	}
	return text
}

// withoutExotic drops bare metal and types with accelerators, unless nothing else is left.
func withoutExotic(cs []candidate) []candidate {
	plain := slices.DeleteFunc(slices.Clone(cs), func(c candidate) bool { return isExotic(c.t) })
	if len(plain) == 0 {
		return cs
	}
	return plain
}

func isExotic(t *instancetypes.Type) bool {
	if _, size, _ := strings.Cut(t.Name, "."); strings.Contains(size, "metal") {
		return true
	}
	return slices.ContainsFunc([]string{
		instancetypes.ResourceNVIDIA, instancetypes.ResourceAMD, instancetypes.ResourceNeuron,
		instancetypes.ResourceNeuronCore, instancetypes.ResourceGaudi,
	}, func(r string) bool { return t.Capacity.Get(r) > 0 })
}

// withoutDearSpot drops spot offerings that cost more than the cheapest on-demand offering. Where the claim does not
// admit on-demand there is none, and every spot offering stays.
func withoutDearSpot(cs []candidate) []candidate {
	cheapest := math.Inf(1)
	for _, c := range cs {
		for _, o := range c.offerings {
			if o.CapacityType == instancetypes.OnDemand {
				cheapest = min(cheapest, o.Price)
			}
		}
	}
	return withOfferings(cs, func(o instancetypes.Offering) bool {
		return o.CapacityType != instancetypes.Spot || o.Price <= cheapest
	})
}

// withOfferings returns the candidates with those of their offerings that ok accepts, without those that have none.
func withOfferings(cs []candidate, ok func(instancetypes.Offering) bool) (out []candidate) {
	for _, c := range cs {
		if c.offerings = lists.Where(c.offerings, ok); len(c.offerings) > 0 {
			out = append(out, c)
		}
	}
	return out
}

func wantsMinValues(reqs requirements.Set) bool {
	return slices.ContainsFunc(reqs.All(), func(r requirements.Requirement) bool { return r.MinValues > 0 })
}

// fewerThanMinValues says which minValues of the claim the candidates do not reach, or nothing.
func fewerThanMinValues(reqs requirements.Set, cs []candidate) string {
	for _, r := range reqs.All() {
		if n := countValues(r, cs); n < r.MinValues {
			return fmt.Sprintf("%s needs %d different values, %d are to be had", r.Key, r.MinValues, n)
		}
	}
	return ""
}

// countValues returns how many of the values that a requirement with minValues allows the candidates have.
func countValues(r requirements.Requirement, cs []candidate) (n int) {
	if r.MinValues == 0 {
		return 0
	}
	seen := map[string]bool{}
	for _, c := range cs {
		have, _ := c.t.Requirements.Get(r.Key)
		for _, v := range have.Values {
			if !seen[v] && r.Has(v) {
				seen[v] = true
				n++
			}
		}
	}
	return n
}
