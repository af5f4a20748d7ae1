// Package overlay corrects what instance types cost and hold, as NodeOverlays say (spec core.md §1.8).
//
// It knows which overlay wins where several set the same thing, and which ones contradict each other. It refuses to know what is
// planned with the corrected types. Types are values: those given are never changed.
package overlay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "joiner/pkg/api/v1"
	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/require"
	"joiner/pkg/resource"
)

// Shelf is what a pool may launch from, before any overlay.
type Shelf struct {
	Pool  cluster.Pool
	Types []catalog.Type
}

// Verdict is what became of one overlay.
type Verdict struct {
	Overlay  string
	Invalid  string // why it makes no sense, empty if it does
	Conflict string // which overlay it contradicts and where, empty for none
}

// InForce reports whether the overlay is applied.
func (v Verdict) InForce() bool { return v.Invalid == "" && v.Conflict == "" }

// Judge tells of every overlay whether it is applied, sorted by name. An overlay that contradicts another of its weight on one
// shelf is applied on none.
func Judge(overlays []cluster.Overlay, shelves []Shelf) []Verdict {
	return lay(overlays, shelves).verdicts
}

// Apply returns the types as the pool has them under the overlays. It sees contradictions within this pool only; for several
// pools use Market.
func Apply(types []catalog.Type, pool cluster.Pool, overlays []cluster.Overlay) []catalog.Type {
	return lay(overlays, []Shelf{{pool, types}}).types(0)
}

// Shelves are what the pools of the snapshot may launch from, sorted by pool; types gives that of a class. Pools that no overlay can
// tell apart share the shelf of the first of them. Pools that are being deleted or whose class is gone have none.
func Shelves(s cluster.Snapshot, types func(class string) []catalog.Type) []Shelf {
	out, _ := shelves(s, once(types))
	return out
}

// shelves also tells which pool has which shelf, by what traits.pool says.
func shelves(s cluster.Snapshot, types func(class string) []catalog.Type) ([]Shelf, map[string]int) {
	pools := slices.DeleteFunc(slices.Clone(s.Pools), func(p cluster.Pool) bool { return p.Deleting })
	slices.SortFunc(pools, func(a, b cluster.Pool) int { return strings.Compare(a.Name, b.Name) })
	of := newTraits(s.Overlays)
	var out []Shelf
	index := map[string]int{}
	for _, p := range pools {
		id := of.pool(p)
		if _, ok := index[id]; !ok {
			index[id] = len(out)
			out = append(out, Shelf{p, types(p.Class)})
		}
	}
	return out, index
}

// traits are what overlays can tell pools apart by.
type traits struct {
	keys  []string              // of labels
	names []require.Requirement // on the pool's name
}

func newTraits(overlays []cluster.Overlay) traits {
	var t traits
	for _, o := range overlays {
		for _, r := range o.Requirements.All() {
			if r.Key == api.LabelNodePool {
				t.names = append(t.names, r)
			} else {
				t.keys = append(t.keys, r.Key)
			}
		}
	}
	slices.Sort(t.keys)
	t.keys = slices.Compact(t.keys)
	return t
}

// pool is everything about a pool that matters to overlays; pools with the same are alike to them.
func (t traits) pool(p cluster.Pool) string {
	id := p.Class
	for _, k := range t.keys {
		v, ok := p.Labels[k]
		id += fmt.Sprintf("|%t %q", ok, v)
	}
	for _, r := range t.names {
		id += fmt.Sprintf("|%t", r.Has(p.Name))
	}
	return id
}

// Market returns what each pool of the snapshot may launch under the snapshot's overlays; types gives what a class may launch
// without. A pool that the snapshot does not have, or has with another class or as one that is being deleted, gets the types as they are. types
// is asked once for a class. The function returned may not be called concurrently.
func Market(s cluster.Snapshot, types func(class string) []catalog.Type) func(pool cluster.Pool) []catalog.Type {
	types = once(types)
	if len(s.Overlays) == 0 {
		return func(p cluster.Pool) []catalog.Type { return types(p.Class) }
	}
	list, index := shelves(s, types)
	b := lay(s.Overlays, list)
	of := newTraits(s.Overlays)
	known := map[string]string{} // class by pool
	for _, p := range s.Pools {
		if !p.Deleting {
			known[p.Name] = p.Class
		}
	}
	done := map[int][]catalog.Type{}
	return func(p cluster.Pool) []catalog.Type {
		if class, ok := known[p.Name]; !ok || class != p.Class {
			return types(p.Class)
		}
		i, ok := index[of.pool(p)]
		if !ok {
			return types(p.Class)
		}
		if done[i] == nil {
			done[i] = b.types(i)
		}
		return done[i]
	}
}

// Named finds a type of a pool by its name, in what types gives for the pool. types is asked once for a pool. The function returned may
// not be called concurrently.
func Named(types func(cluster.Pool) []catalog.Type) func(pool cluster.Pool, name string) (catalog.Type, bool) {
	known := map[string]map[string]catalog.Type{}
	return func(p cluster.Pool, name string) (catalog.Type, bool) {
		if known[p.Name] == nil {
			known[p.Name] = map[string]catalog.Type{}
			for _, t := range types(p) {
				known[p.Name][t.Name] = t
			}
		}
		t, ok := known[p.Name][name]
		return t, ok
	}
}

// once remembers the answers.
func once(types func(class string) []catalog.Type) func(class string) []catalog.Type {
	known := map[string][]catalog.Type{}
	return func(class string) []catalog.Type {
		out, ok := known[class]
		if !ok {
			out = types(class)
			known[class] = out
		}
		return out
	}
}

// Mark adds the annotations of a claim that may become a node of the type (spec core.md §0.1).
func Mark(annotations map[string]string, t catalog.Type) {
	if t.PriceOverlaid {
		annotations[api.AnnotationPriceOverlay] = "true"
	}
	if t.CapacityOverlaid {
		annotations[api.AnnotationCapacityOverlay] = "true"
	}
}

// book has what the overlays set, by shelf and index of the type.
type book struct {
	shelves  []Shelf
	entries  [][]entry
	verdicts []Verdict
}

// entry is what is set for one type of one shelf.
type entry struct {
	price    []mark // by index of the offering; nil if nothing is set
	capacity map[string]mark
}

// mark says who set a thing, and who was the last that would have liked to.
type mark struct{ by, last *cluster.Overlay }

// hit is a type that an overlay is about, with the offerings.
type hit struct {
	shelf, typ int
	offerings  []int
}

// lay applies the overlays, the heaviest first and among equals the last by name first.
func lay(overlays []cluster.Overlay, shelves []Shelf) *book {
	b := &book{shelves: shelves, entries: make([][]entry, len(shelves))}
	for i := range b.entries {
		b.entries[i] = make([]entry, len(shelves[i].Types))
	}
	sorted := slices.Clone(overlays)
	slices.SortFunc(sorted, func(x, y cluster.Overlay) int {
		return cmp.Or(cmp.Compare(y.Weight, x.Weight), strings.Compare(y.Name, x.Name))
	})
	for i := range sorted {
		o := &sorted[i]
		v := Verdict{Overlay: o.Name, Invalid: o.Message}
		if v.Invalid == "" {
			hits := b.hits(o)
			if v.Conflict = b.conflict(o, hits); v.Conflict == "" {
				b.write(o, hits)
			}
		}
		b.verdicts = append(b.verdicts, v)
	}
	slices.SortFunc(b.verdicts, func(x, y Verdict) int { return strings.Compare(x.Overlay, y.Overlay) })
	return b
}

func (b *book) hits(o *cluster.Overlay) []hit {
	var out []hit
	for i, h := range b.shelves {
		for j := range h.Types {
			t := &h.Types[j]
			if !about(o.Requirements, h.Pool, t) {
				continue
			}
			var list []int
			for k, f := range t.Offerings {
				if f.Meets(o.Requirements) {
					list = append(list, k)
				}
			}
			if len(list) > 0 {
				out = append(out, hit{i, j, list})
			}
		}
	}
	return out
}

// about reports whether the requirements hold for the type as nodes of the pool, offerings aside. A label that neither the type
// nor the pool's template gives is not there.
func about(rs require.Set, p cluster.Pool, t *catalog.Type) bool {
	for _, r := range rs.All() {
		known, ok := t.Requirements.Get(r.Key)
		v, labelled := p.Labels[r.Key]
		if r.Key == api.LabelNodePool {
			v, labelled = p.Name, true
		}
		switch {
		case labelled && ok:
			known = known.Intersect(require.Of(r.Key, v))
		case labelled:
			known, ok = require.Of(r.Key, v), true
		}
		if !ok && !r.AllowsAbsent() || ok && !known.Overlaps(r) {
			return false
		}
	}
	return true
}

// conflict says which overlay of the same weight sets what this one sets, empty for none.
func (b *book) conflict(o *cluster.Overlay, hits []hit) string {
	for _, h := range hits {
		e := b.entries[h.shelf][h.typ]
		says := func(m mark, what string) string {
			where := b.shelves[h.shelf]
			return fmt.Sprintf("NodeOverlay %s of the same weight sets %s of %s in pool %s", m.last.Name, what, where.Types[h.typ].Name, where.Pool.Name)
		}
		for _, k := range h.offerings {
			if prices(o) && e.price != nil && e.price[k].last != nil && e.price[k].last.Weight == o.Weight {
				return says(e.price[k], "the price")
			}
		}
		for _, c := range o.Capacity {
			if m, ok := e.capacity[c.Name]; ok && m.last.Weight == o.Weight {
				return says(m, c.Name)
			}
		}
	}
	return ""
}

func (b *book) write(o *cluster.Overlay, hits []hit) {
	for _, h := range hits {
		e := &b.entries[h.shelf][h.typ]
		if prices(o) {
			if e.price == nil {
				e.price = make([]mark, len(b.shelves[h.shelf].Types[h.typ].Offerings))
			}
			for _, k := range h.offerings {
				e.price[k] = e.price[k].touched(o)
			}
		}
		if len(o.Capacity) > 0 && e.capacity == nil {
			e.capacity = map[string]mark{}
		}
		for _, c := range o.Capacity {
			e.capacity[c.Name] = e.capacity[c.Name].touched(o)
		}
	}
}

// touched is the mark after o: what is set stays.
func (m mark) touched(o *cluster.Overlay) mark {
	if m.by == nil {
		m.by = o
	}
	m.last = o
	return m
}

// types are those of a shelf as the book says.
func (b *book) types(shelf int) []catalog.Type {
	out := slices.Clone(b.shelves[shelf].Types)
	for i := range out {
		out[i] = b.entries[shelf][i].applied(out[i])
	}
	return out
}

func (e entry) applied(t catalog.Type) catalog.Type {
	if e.price != nil {
		t.Offerings = slices.Clone(t.Offerings)
		for k, m := range e.price {
			if m.by != nil {
				t.Offerings[k] = priced(t.Offerings[k], m.by)
			}
		}
		t.PriceOverlaid = true
		catalog.SortOfferings(t.Offerings)
	}
	if len(e.capacity) > 0 {
		for _, name := range slices.Sorted(maps.Keys(e.capacity)) {
			t = holding(t, name, e.capacity[name].by)
		}
		t.CapacityOverlaid = true
	}
	return t
}

func prices(o *cluster.Overlay) bool { return o.Price != nil || o.Change != nil }

// priced is the offering at the overlay's price, never below zero. A price that nobody knows cannot be changed, only replaced.
func priced(f catalog.Offering, o *cluster.Overlay) catalog.Offering {
	switch {
	case o.Price != nil:
		return f.Priced(*o.Price)
	case !f.PriceKnown():
		return f
	}
	return f.Priced(max(0, f.Price*(1+o.Change.Percent/100)+o.Change.USD))
}

// holding is the type with the overlay's amount of the resource. Huge pages come out of the memory that pods may use.
func holding(t catalog.Type, name string, o *cluster.Overlay) catalog.Type {
	i := slices.IndexFunc(o.Capacity, func(c resource.Extended) bool { return c.Name == name })
	n := o.Capacity[i].Count
	if strings.HasPrefix(name, "hugepages-") {
		t.Allocatable.Memory = max(0, t.Allocatable.Memory-(n-t.Allocatable.Get(name)))
	}
	t.Capacity, t.Allocatable = t.Capacity.With(name, n), t.Allocatable.With(name, n)
	return t
}
