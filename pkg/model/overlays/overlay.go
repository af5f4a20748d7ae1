package overlays

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// PoolOfferings holds the types that a pool may launch from, before any overlay.
type PoolOfferings struct {
	Pool  cluster.Pool
	Types []instancetypes.Type
}

// Verdict is the result for one overlay.
type Verdict struct {
	Overlay  string
	Invalid  string // why it makes no sense, empty if it does
	Conflict string // which overlay it contradicts and where, empty for none
}

// InForce reports whether the overlay is applied.
func (v Verdict) InForce() bool { return v.Invalid == "" && v.Conflict == "" }

// JudgeOverlays tells of every overlay whether it is applied, sorted by name. An overlay that contradicts another of
// its weight on one shelf is applied on none.
func JudgeOverlays(overlays []cluster.Overlay, shelves []PoolOfferings) []Verdict {
	return applyInOrder(overlays, shelves).verdicts
}

// OfferingsByPool returns the types that the pools of the snapshot may launch from, sorted by pool; types returns those
// of a class. Pools that no overlay can tell apart share the shelf of the first of them. Pools that are being deleted
// or whose class is gone have none.
func OfferingsByPool(s cluster.Snapshot, types func(class string) []instancetypes.Type) []PoolOfferings {
	out, _ := groupPools(s, memoize(types))
	return out
}

// groupPools also tells which pool has which shelf, by what traits.pool says.
func groupPools(s cluster.Snapshot, types func(class string) []instancetypes.Type) ([]PoolOfferings, map[string]int) {
	pools := slices.DeleteFunc(slices.Clone(s.Pools), func(p cluster.Pool) bool { return p.Deleting })
	slices.SortFunc(pools, func(a, b cluster.Pool) int { return strings.Compare(a.Name, b.Name) })
	of := newTraits(s.Overlays)
	var out []PoolOfferings
	index := map[string]int{}
	for _, p := range pools {
		id := of.traitsOf(p)
		if _, ok := index[id]; !ok {
			index[id] = len(out)
			out = append(out, PoolOfferings{p, types(p.ClassKey())})
		}
	}
	return out, index
}

// ByPool returns what each pool of the snapshot may launch under the snapshot's overlays, with the devices that DRA
// drivers will publish of its nodes, and with what its nodes cost the owner beside AWS where the pool says so; types
// gives what a class may launch without. A pool that the snapshot
// does not have, or has with another class or as one that is being deleted, gets the types without overlays. types is
// asked once for a class. The function returned may not be called concurrently.
func ByPool(s cluster.Snapshot, types func(class string) []instancetypes.Type) func(
	pool cluster.Pool) []instancetypes.Type {
	overlaid := overlaidByPool(s, withDevices(s.Devices, types))
	done := map[string][]instancetypes.Type{}
	return func(p cluster.Pool) []instancetypes.Type {
		more := s.DeclaredCost(p) - s.DeclaredCost(cluster.Pool{})
		if more == 0 {
			return overlaid(p)
		}
		key := fmt.Sprintf("%s %g", cluster.RevisionKey(p.Name, p.Revision), more)
		if _, known := done[key]; !known {
			done[key] = instancetypes.AddDeclaredCost(overlaid(p), more)
		}
		return done[key]
	}
}

func overlaidByPool(s cluster.Snapshot, types func(class string) []instancetypes.Type) func(
	pool cluster.Pool) []instancetypes.Type {
	types = memoize(types)
	if len(s.Overlays) == 0 {
		return func(p cluster.Pool) []instancetypes.Type { return types(p.ClassKey()) }
	}
	list, index := groupPools(s, types)
	b := applyInOrder(s.Overlays, list)
	of := newTraits(s.Overlays)
	known := map[string]string{} // class by pool
	for _, p := range s.Pools {
		if !p.Deleting {
			known[p.Name] = p.ClassKey()
		}
	}
	done := map[int][]instancetypes.Type{}
	return func(p cluster.Pool) []instancetypes.Type {
		if class, ok := known[p.Name]; !ok || class != p.ClassKey() {
			return types(p.ClassKey())
		}
		i, ok := index[of.traitsOf(p)]
		if !ok {
			return types(p.ClassKey())
		}
		if done[i] == nil {
			done[i] = b.overlaidTypes(i)
		}
		return done[i]
	}
}

// FindType finds a type of a pool by its name, in what types gives for the pool. types is asked once for a pool. The
// function returned may not be called concurrently.
func FindType(types func(cluster.Pool) []instancetypes.Type) func(pool cluster.Pool, name string) (instancetypes.Type,
	bool) {
	known := map[string]map[string]instancetypes.Type{}
	return func(p cluster.Pool, name string) (instancetypes.Type, bool) {
		key := cluster.RevisionKey(p.Name, p.Revision)
		if known[key] == nil {
			known[key] = map[string]instancetypes.Type{}
			for _, t := range types(p) {
				known[key][t.Name] = t
			}
		}
		t, ok := known[key][name]
		return t, ok
	}
}

// memoize remembers the answers.
func memoize(types func(class string) []instancetypes.Type) func(class string) []instancetypes.Type {
	known := map[string][]instancetypes.Type{}
	return func(class string) []instancetypes.Type {
		out, ok := known[class]
		if !ok {
			out = types(class)
			known[class] = out
		}
		return out
	}
}

// AnnotateClaim adds the annotations of a claim that may become a node of the type.
func AnnotateClaim(annotations map[string]string, t instancetypes.Type) {
	if t.PriceOverlaid {
		annotations[api.AnnotationPriceOverlay] = "true"
	}
	if t.CapacityOverlaid {
		annotations[api.AnnotationCapacityOverlay] = "true"
	}
}

// overlayBook has what the overlays set, by shelf and index of the type.
type overlayBook struct {
	shelves  []PoolOfferings
	entries  [][]typeOverlay
	verdicts []Verdict
}

// typeOverlay holds the price and the capacity that are set for one type of one shelf.
type typeOverlay struct {
	price    []overlayMark // by index of the offering; nil if nothing is set
	capacity map[string]overlayMark
}

// overlayMark says who set a thing, and who was the last that would have liked to.
type overlayMark struct{ by, last *cluster.Overlay }

// matchedType is a type that an overlay is about, with the offerings.
type matchedType struct {
	shelf, typ int
	offerings  []int
}

// applyInOrder applies the overlays, the heaviest first and among equals the last by name first.
func applyInOrder(overlays []cluster.Overlay, shelves []PoolOfferings) *overlayBook {
	b := &overlayBook{shelves: shelves, entries: make([][]typeOverlay, len(shelves))}
	for i := range b.entries {
		b.entries[i] = make([]typeOverlay, len(shelves[i].Types))
	}
	sorted := boundOverlays(overlays)
	for i := range sorted {
		o := &sorted[i]
		v := Verdict{Overlay: o.Name, Invalid: o.Message}
		if v.Invalid == "" {
			hits := b.matchedTypes(o)
			if v.Conflict = b.conflictingOverlay(o, hits); v.Conflict == "" {
				b.writeOverlay(o, hits)
			}
		}
		b.verdicts = append(b.verdicts, v)
	}
	slices.SortFunc(b.verdicts, func(x, y Verdict) int { return strings.Compare(x.Overlay, y.Overlay) })
	return b
}

func (b *overlayBook) matchedTypes(o *cluster.Overlay) []matchedType {
	var out []matchedType
	for i, h := range b.shelves {
		for j := range h.Types {
			t := &h.Types[j]
			if !appliesTo(o.Requirements, h.Pool, t) {
				continue
			}
			var list []int
			for k, f := range t.Offerings {
				if f.Meets(o.Requirements) {
					list = append(list, k)
				}
			}
			if len(list) > 0 {
				out = append(out, matchedType{i, j, list})
			}
		}
	}
	return out
}

// appliesTo reports whether the requirements hold for the type as nodes of the pool, offerings aside. A label that
// neither the type nor the pool's template gives is not there.
func appliesTo(rs requirements.Set, p cluster.Pool, t *instancetypes.Type) bool {
	for _, r := range rs.All() {
		known, ok := t.Requirements.Get(r.Key)
		v, labelled := p.Labels[r.Key]
		if r.Key == api.LabelNodePool {
			v, labelled = p.Name, true
		}
		switch {
		case labelled && ok:
			known = known.Intersect(requirements.Of(r.Key, v))
		case labelled:
			known, ok = requirements.Of(r.Key, v), true
		}
		if !ok && !r.AllowsAbsent() || ok && !known.Overlaps(r) {
			return false
		}
	}
	return true
}

// conflictingOverlay says which overlay of the same weight sets what this one sets, empty for none.
func (b *overlayBook) conflictingOverlay(o *cluster.Overlay, hits []matchedType) string {
	for _, h := range hits {
		e := b.entries[h.shelf][h.typ]
		says := func(m overlayMark, what string) string {
			where := b.shelves[h.shelf]
			return fmt.Sprintf("NodeOverlay %s of the same weight sets %s of %s in pool %s", m.last.Name, what,
				where.Types[h.typ].Name, where.Pool.Name)
		}
		for _, k := range h.offerings {
			if overlaidPrice(o) && e.price != nil && e.price[k].last != nil && e.price[k].last.Weight == o.Weight {
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

func (b *overlayBook) writeOverlay(o *cluster.Overlay, hits []matchedType) {
	for _, h := range hits {
		e := &b.entries[h.shelf][h.typ]
		if overlaidPrice(o) {
			if e.price == nil {
				e.price = make([]overlayMark, len(b.shelves[h.shelf].Types[h.typ].Offerings))
			}
			for _, k := range h.offerings {
				e.price[k] = e.price[k].afterOverlay(o)
			}
		}
		if len(o.Capacity) > 0 && e.capacity == nil {
			e.capacity = map[string]overlayMark{}
		}
		for _, c := range o.Capacity {
			e.capacity[c.Name] = e.capacity[c.Name].afterOverlay(o)
		}
	}
}

// afterOverlay is the mark after o: what is set stays.
func (m overlayMark) afterOverlay(o *cluster.Overlay) overlayMark {
	if m.by == nil {
		m.by = o
	}
	m.last = o
	return m
}

// overlaidTypes returns the types of a shelf with what the overlays set.
func (b *overlayBook) overlaidTypes(shelf int) []instancetypes.Type {
	out := slices.Clone(b.shelves[shelf].Types)
	for i := range out {
		out[i] = b.entries[shelf][i].applyToType(out[i])
	}
	return out
}

func (e typeOverlay) applyToType(t instancetypes.Type) instancetypes.Type {
	if e.price != nil {
		t.Offerings = slices.Clone(t.Offerings)
		for k, m := range e.price {
			if m.by != nil {
				t.Offerings[k] = pricedOffering(t.Offerings[k], m.by)
			}
		}
		t.PriceOverlaid = true
		instancetypes.SortOfferings(t.Offerings)
	}
	if len(e.capacity) > 0 {
		for _, name := range slices.Sorted(maps.Keys(e.capacity)) {
			t = withCapacity(t, name, e.capacity[name].by)
		}
		t.CapacityOverlaid = true
	}
	return t
}

func overlaidPrice(o *cluster.Overlay) bool { return o.Price != nil || o.Change != nil }

// pricedOffering is the offering at the overlay's price, never below zero. A price that nobody knows cannot be changed,
// only replaced.
func pricedOffering(f instancetypes.Offering, o *cluster.Overlay) instancetypes.Offering {
	switch {
	case o.Price != nil:
		return f.AtPrice(*o.Price)
	case !f.PriceKnown():
		return f
	}
	return f.AtPrice(min(MostPrice, max(0, f.InstanceUSD()*(1+o.Change.Percent/100)+o.Change.USD)))
}

// withCapacity is the type with the overlay's amount of the resource. Huge pages come out of the memory that pods may
// use.
func withCapacity(t instancetypes.Type, name string, o *cluster.Overlay) instancetypes.Type {
	i := slices.IndexFunc(o.Capacity, func(c resources.Extended) bool { return c.Name == name })
	n := o.Capacity[i].Count
	if strings.HasPrefix(name, "hugepages-") {
		t.Allocatable.Memory = max(0, t.Allocatable.Memory-(n-t.Allocatable.Get(name)))
	}
	t.Capacity, t.Allocatable = t.Capacity.With(name, n), t.Allocatable.With(name, n)
	return t
}
