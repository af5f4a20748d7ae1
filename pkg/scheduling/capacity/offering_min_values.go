package capacity

import (
	"fmt"
	"slices"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/podclass"
)

// TypeOption is a model that can take the place of the one a node was opened with, by its cheapest offering.
type TypeOption struct {
	Model     *InstanceType // the instance type in its NodePool
	Offerings []*Offering   // that may hold the pods of the node, cheapest first
	Best      *Offering     // the cheapest of Offerings; nil until their room was compared
	Spot      bool          // one of Offerings is spot; false until their room was compared
}

// LoweredMinValues are, by key, the MinValues of a new node that are less than its pool asks for.
type LoweredMinValues map[string]int

// LowerMinValues finds what the options leave possible, nil when that is enough.
func LowerMinValues(set requirements.Set, opts []TypeOption) LoweredMinValues {
	var out LoweredMinValues
	for _, r := range set.All() {
		if r.MinValues == 0 {
			continue
		}
		if n := distinctValues(r, opts); n < r.MinValues {
			if out == nil {
				out = LoweredMinValues{}
			}
			out[r.Key] = n
		}
	}
	return out
}

// ApplyTo is the set with the MinValues that are left.
func (l LoweredMinValues) ApplyTo(set requirements.Set) requirements.Set {
	if len(l) == 0 {
		return set
	}
	for _, r := range set.All() {
		if n, ok := l[r.Key]; ok {
			r.MinValues = n
			set = set.Without(r.Key).And(r)
		}
	}
	return set
}

// MinValues reports whether the pool asks for a number of values of some label.
func (p *OfferingPool) MinValues() bool {
	return slices.ContainsFunc(p.Required.All(), func(r requirements.Requirement) bool { return r.MinValues > 0 })
}

// lacksValues reports whether all types of the pool together have too few values for its MinValues.
func (p *OfferingPool) lacksValues() bool {
	opts := make([]TypeOption, len(p.Models))
	for i, t := range p.Models {
		opts[i] = TypeOption{Model: t, Offerings: t.Sells}
	}
	return len(LackingMinValues(p.Required, opts)) > 0
}

// LackingMinValues names the keys for which the options have fewer distinct values than the set asks for.
func LackingMinValues(set requirements.Set, opts []TypeOption) []string {
	var out []string
	for _, r := range set.All() {
		if r.MinValues == 0 {
			continue
		}
		if n := distinctValues(r, opts); n < r.MinValues {
			out = append(out, fmt.Sprintf("%s has %d of %d values", r.Key, n, r.MinValues))
		}
	}
	return out
}

// distinctValues counts the values of the label that a claim for the options leaves open.
func distinctValues(r requirements.Requirement, opts []TypeOption) int {
	seen := map[string]bool{}
	for _, o := range opts {
		for _, v := range o.allowedValues(r) {
			seen[v] = true
		}
	}
	return len(seen)
}

// allowedValues are the values that the requirement allows of those that nodes of the option may have: pods may narrow
// it to fewer than the type has, and offerings that are left to fewer zones and capacity types.
func (o TypeOption) allowedValues(r requirements.Requirement) []string {
	var all []string
	switch own, _ := o.Model.Type.Requirements.Get(r.Key); {
	case r.Key == instancetypes.LabelType:
		all = []string{o.Model.Type.Name}
	case podclass.VariesByOffering(r.Key):
		for _, x := range o.Offerings {
			if v, _ := x.Label(r.Key); v != "" {
				all = append(all, v)
			}
		}
	case !own.Not:
		all = slices.Clone(own.Values)
	}
	return slices.DeleteFunc(all, func(v string) bool { return !r.Has(v) })
}

// MarkNeededForMinValues marks the cheapest options that together have the values which the set's MinValues ask for.
func MarkNeededForMinValues(opts []TypeOption, set requirements.Set) []bool {
	out := make([]bool, len(opts))
	for _, r := range set.All() {
		if r.MinValues == 0 {
			continue
		}
		seen := map[string]bool{}
		for i, o := range opts {
			for _, v := range o.allowedValues(r) {
				if !seen[v] && len(seen) < r.MinValues {
					seen[v], out[i] = true, true
				}
			}
		}
	}
	return out
}

// OnlyOption is the offering as all that may be launched.
func (o *Offering) OnlyOption() []TypeOption {
	return []TypeOption{{Model: o.InstanceType, Offerings: []*Offering{o}, Best: o}}
}
