package pack

import (
	"fmt"
	"slices"
	"strings"

	"joiner/pkg/require"
	"joiner/pkg/resource"
)

// flexible makes the takes as small as it needs for enough types to hold them for the pool's minValues; nil when none is small
// enough. Where minValues may be lowered (BestEffort) they are, to what the first pod leaves possible, and no
// further for those that join it. The capacity is what the node may take of the pool's limits: that of the largest type it must
// be able to become. A pod that cannot be there even alone is left out, and keeps no other out that does without it.
func (a *attempt) flexible(o *offer, takes []take) ([]take, resource.List, lowered) {
	p := o.model.pool
	if !p.minValues() {
		return takes, o.model.typ.Capacity, nil
	}
	if o.Limited() { // of one type, and so only where that is enough, see mayBeOneType
		return takes, o.model.typ.Capacity, lower(a.w.held(p, a.loads(takes)).set, onlyOption(o))
	}
	for len(takes) > 0 {
		some, capacity, low, missing := a.flexibly(o, takes)
		if some != nil {
			return some, capacity, low
		}
		k := takes[0].lot.view.kind
		a.blocked[k.id][fmt.Sprintf("pool %s: too few instance types can hold the pod for minValues: %s", p.Name, strings.Join(missing, ", "))] = true
		if takes = takes[1:]; slices.ContainsFunc(takes, func(t take) bool { return t.lot.view.follows() }) {
			break // it may be near the pod that is left out
		}
	}
	return nil, resource.List{}, nil
}

// flexibly are the most of the takes, from the first on, that leave enough types; nil and what is missing when the first pod alone does not.
// The fewer pods, the more types: so they are found by bisection.
func (a *attempt) flexibly(o *offer, takes []take) (best []take, capacity resource.List, low lowered, missing []string) {
	p := o.model.pool
	if a.w.s.Rules.RelaxMinValues {
		first := takes[0]
		first.n = 1
		opts, set := a.options(p, a.loads([]take{first}), true)
		low = lower(set, opts)
	}
	for least, most := 0, pods(takes); least < most; {
		n := most
		if missing != nil {
			n = (least + most + 1) / 2
		}
		some := firstOf(takes, n)
		opts, set := a.options(p, a.loads(some), true)
		set = low.apply(set)
		if lacks := lacking(set, opts); len(lacks) > 0 {
			most, missing = n-1, lacks
			continue
		}
		least, best, capacity = n, some, o.model.typ.Capacity
		for i, is := range needed(opts, set) {
			if is {
				capacity = capacity.Max(opts[i].model.typ.Capacity)
			}
		}
	}
	return best, capacity, low, missing
}

// loads are the takes as a bin would have them.
func (a *attempt) loads(takes []take) []load {
	out := make([]load, len(takes))
	for i, t := range takes {
		k := t.lot.view.kind
		out[i] = load{view: t.lot.view, admit: t.lot.admit, alt: t.alt, pods: a.rest[k.id][:t.n]}
	}
	return out
}

// lowered are, by key, the minValues of a new node that are less than its pool asks for.
type lowered map[string]int

// lower finds what the options leave possible, nil when that is enough.
func lower(set require.Set, opts []option) lowered {
	var out lowered
	for _, r := range set.All() {
		if r.MinValues == 0 {
			continue
		}
		if n := distinctValues(r.Key, opts); n < r.MinValues {
			if out == nil {
				out = lowered{}
			}
			out[r.Key] = n
		}
	}
	return out
}

// apply is the set with the minValues that are left.
func (l lowered) apply(set require.Set) require.Set {
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

func (p *pool) minValues() bool {
	return slices.ContainsFunc(p.req.All(), func(r require.Requirement) bool { return r.MinValues > 0 })
}

// pods counts those of the takes.
func pods(takes []take) int {
	n := 0
	for _, t := range takes {
		n += t.n
	}
	return n
}

// firstOf are the first n pods of the takes.
func firstOf(takes []take, n int) []take {
	var out []take
	for _, t := range takes {
		if t.n = min(t.n, n); t.n > 0 {
			out = append(out, t)
		}
		n -= t.n
	}
	return out
}

// lacking names the keys for which the options have fewer distinct values than the set asks for.
func lacking(set require.Set, opts []option) []string {
	var out []string
	for _, r := range set.All() {
		if r.MinValues == 0 {
			continue
		}
		if n := distinctValues(r.Key, opts); n < r.MinValues {
			out = append(out, fmt.Sprintf("%s has %d of %d values", r.Key, n, r.MinValues))
		}
	}
	return out
}

func distinctValues(key string, opts []option) int {
	seen := map[string]bool{}
	for _, o := range opts {
		for _, v := range o.values(key) {
			seen[v] = true
		}
	}
	return len(seen)
}

func (o option) values(key string) []string {
	if key == labelType {
		return []string{o.model.typ.Name}
	}
	r, _ := o.model.typ.Requirements.Get(key)
	if r.Not {
		return nil
	}
	return r.Values
}

// choose keeps the cheapest options: those within the price margin, more where spot needs them, and those that the
// pool's minValues need.
func (w *world) choose(opts []option, set require.Set) []option {
	margin, spotTypes := w.flexibility()
	keep := needed(opts, set)
	n := 0
	for _, is := range keep {
		if is {
			n++
		}
	}
	for i, o := range opts {
		if !keep[i] && n < mostTypes && (o.best.Price <= opts[0].best.Price*margin || o.spot && n < spotTypes) {
			keep[i] = true
			n++
		}
	}
	var out []option
	for i, o := range opts {
		if keep[i] {
			out = append(out, o)
		}
	}
	return out
}

// needed marks the cheapest options that together have the values which the set's minValues ask for.
func needed(opts []option, set require.Set) []bool {
	out := make([]bool, len(opts))
	for _, r := range set.All() {
		if r.MinValues == 0 {
			continue
		}
		seen := map[string]bool{}
		for i, o := range opts {
			for _, v := range o.values(r.Key) {
				if !seen[v] && len(seen) < r.MinValues {
					seen[v], out[i] = true, true
				}
			}
		}
	}
	return out
}
