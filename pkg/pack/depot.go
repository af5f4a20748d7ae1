package pack

import (
	"reflect"
	"slices"
	"time"

	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/overlay"
)

// Depot keeps from one pass to the next what is sold and the stock made of that, as long as all is the same that those depend on. What it
// gives is what Sells and Stocked would make anew. Catalogs and types are values: nobody may change one that was given to it. The zero
// value is empty, a nil depot keeps nothing. It may not be used concurrently.
type Depot struct {
	catalog  catalog.Catalog
	resolved map[string]resolved // by class
	stock    *Stock
}

// resolved are the types of a class as they are from one time to another.
type resolved struct {
	class   catalog.Class
	soldOut []catalog.Mark
	from    time.Time
	until   time.Time // zero for ever
	types   []catalog.Type
}

// Sells is the market of the snapshot's catalog.
func (d *Depot) Sells(s cluster.Snapshot) Market {
	if d == nil {
		return Sells(s)
	}
	if !reflect.DeepEqual(d.catalog, s.Catalog) {
		d.catalog, d.resolved = s.Catalog, map[string]resolved{}
	}
	asked := map[string]bool{}
	return func(class string) []catalog.Type {
		have := d.resolved[class]
		if asked[class] {
			return have.types
		}
		c, exists := s.ClassOf(class)
		if asked[class] = true; !exists {
			delete(d.resolved, class)
			return nil
		}
		if have.types == nil || !have.holds(s.Now) || !reflect.DeepEqual(have.class, c) || !slices.Equal(have.soldOut, s.SoldOut) {
			have = resolved{class: c, soldOut: slices.Clone(s.SoldOut), from: s.Now, until: catalog.Until(c, s.SoldOut, s.Now),
				types: s.Catalog.Paid(catalog.Resolve(s.Catalog, c, s.SoldOut, s.Now))}
			d.resolved[class] = have
		}
		return have.types
	}
}

func (r resolved) holds(now time.Time) bool {
	return !now.Before(r.from) && (r.until.IsZero() || now.Before(r.until))
}

// Stocked is the stock for snapshots that differ from s in their nodes, in their claims, and in where pods are.
func (d *Depot) Stocked(s cluster.Snapshot, sells Market) *Stock {
	if d == nil {
		return Stocked(s, sells)
	}
	if d.stock == nil || !d.stock.serves(s, sells) {
		d.stock = Stocked(s, sells)
	}
	return d.stock
}

// mostLearnt is how much a stock may have learnt beyond what it had before it is made anew.
const mostLearnt = 2_000

// size is how much is remembered of what was asked.
func (w *world) size() int {
	n := len(w.admissions) + len(w.shapes)/10 + len(w.holders)
	for _, p := range w.pools {
		n += len(p.some.known)
	}
	return n
}

// serves makes the stock that of the snapshot, if that would have the same.
func (st *Stock) serves(s cluster.Snapshot, sells Market) bool {
	from, was := st.from, st.from.s
	if len(s.Pools) > from.few || from.size() > 2*st.size+mostLearnt || !reflect.DeepEqual(
		[]any{s.Pools, s.Classes, s.Daemons, s.Overlays, s.Rules}, []any{was.Pools, was.Classes, was.Daemons, was.Overlays, was.Rules}) {
		return false
	}
	for _, c := range s.Classes {
		if a, b := sells(c.Name), st.sells(c.Name); len(a) != len(b) || len(a) > 0 && &a[0] != &b[0] {
			return false
		}
	}
	w := newWorld(allWaiting(s), from.few)
	w.ask()
	if w.skipPools(); !slices.Equal(w.skipped, from.skipped) || !slices.Equal(w.needed(), from.dims) || !reflect.DeepEqual(w.namedValues(), from.named) {
		return false
	}
	for _, ask := range from.asksOf(w) {
		for _, p := range from.pools {
			if !p.some.asks[ask] {
				return false
			}
		}
	}
	from.s, from.all, from.kinds = w.s, w.all, w.kinds
	st.sells, st.sold = sells, overlay.Market(s, sells)
	st.faces, st.seen = faces{}, &sightings{} // the objects of a pass are its own
	if slices.ContainsFunc(from.pools, func(p *pool) bool { return len(p.reserved)+len(p.paid) > 0 }) {
		from.countUse(st.sold)
		st.few, st.worth = from.scarce(), valued{}
	}
	return true
}

// allWaiting is the snapshot with every pod waiting that may move.
func allWaiting(s cluster.Snapshot) cluster.Snapshot {
	s.Pods = slices.Clone(s.Pods)
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Reschedulable() {
			p.NodeName, p.Nominated, p.Unscheduled = "", "", true
		}
	}
	return s
}
