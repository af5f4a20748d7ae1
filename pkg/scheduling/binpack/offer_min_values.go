package binpack

import (
	"fmt"
	"slices"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/podclass"
)

// loweredMinValues are, by key, the minValues of a new node that are less than its pool asks for.
type loweredMinValues map[string]int

// lowerMinValues finds what the options leave possible, nil when that is enough.
func lowerMinValues(set requirements.Set, opts []typeOption) loweredMinValues {
	var out loweredMinValues
	for _, r := range set.All() {
		if r.MinValues == 0 {
			continue
		}
		if n := distinctValues(r, opts); n < r.MinValues {
			if out == nil {
				out = loweredMinValues{}
			}
			out[r.Key] = n
		}
	}
	return out
}

// applyTo is the set with the minValues that are left.
func (l loweredMinValues) applyTo(set requirements.Set) requirements.Set {
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

// minValues reports whether the pool asks for a number of values of some label.
func (p *pool) minValues() bool {
	return slices.ContainsFunc(p.req.All(), func(r requirements.Requirement) bool { return r.MinValues > 0 })
}

// lacksValues reports whether all types of the pool together have too few values for its minValues.
func (p *pool) lacksValues() bool {
	opts := make([]typeOption, len(p.models))
	for i, m := range p.models {
		opts[i] = typeOption{model: m, offers: m.sells}
	}
	return len(lackingMinValues(p.req, opts)) > 0
}

// lackingMinValues names the keys for which the options have fewer distinct values than the set asks for.
func lackingMinValues(set requirements.Set, opts []typeOption) []string {
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
func distinctValues(r requirements.Requirement, opts []typeOption) int {
	seen := map[string]bool{}
	for _, o := range opts {
		for _, v := range o.allowedValues(r) {
			seen[v] = true
		}
	}
	return len(seen)
}

// allowedValues are the values that the requirement allows of those that nodes of the option may have: pods may narrow
// it to fewer than the type has, and offers that are left to fewer zones and capacity types.
func (o typeOption) allowedValues(r requirements.Requirement) []string {
	var all []string
	switch own, _ := o.model.typ.Requirements.Get(r.Key); {
	case r.Key == instancetypes.LabelType:
		all = []string{o.model.typ.Name}
	case podclass.VariesByOffering(r.Key):
		for _, x := range o.offers {
			if v, _ := x.Label(r.Key); v != "" {
				all = append(all, v)
			}
		}
	case !own.Not:
		all = slices.Clone(own.Values)
	}
	return slices.DeleteFunc(all, func(v string) bool { return !r.Has(v) })
}

// markNeededForMinValues marks the cheapest options that together have the values which the set's minValues ask for.
func markNeededForMinValues(opts []typeOption, set requirements.Set) []bool {
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

// onlyOption is the offer as all that may be launched.
func onlyOption(o *poolOffering) []typeOption {
	return []typeOption{{model: o.model, offers: []*poolOffering{o}, best: o}}
}
