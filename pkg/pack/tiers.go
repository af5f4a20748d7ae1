package pack

import (
	"slices"

	"joiner/pkg/resource"
)

// weights are the pools by weight, the heaviest first.
type weights struct {
	pools [][]*pool
	known []map[priced]bool // by index of pools: what sells has answered
}

// byWeight finds them once.
func (w *world) byWeight() *weights {
	if w.weights != nil {
		return w.weights
	}
	w.weights = &weights{}
	for start := 0; start < len(w.pools); {
		end := start
		for end < len(w.pools) && w.pools[end].Weight == w.pools[start].Weight {
			end++
		}
		w.weights.pools = append(w.weights.pools, w.pools[start:end])
		w.weights.known = append(w.weights.known, map[priced]bool{})
		start = end
	}
	return w.weights
}

// sells reports whether pools of that weight have a node for sale that can hold a pod of the kind.
func (x *weights) sells(i int, admit *admission, k *kind) bool {
	id := priced{admit, k.shape}
	yes, ok := x.known[i][id]
	if !ok {
		yes = slices.ContainsFunc(x.pools[i], func(p *pool) bool {
			return !admit.never(p) && slices.ContainsFunc(p.sale, func(o *offer) bool { return fits(k.need, o.room) > 0 && admit.check(o) >= 0 })
		})
		x.known[i][id] = yes
	}
	return yes
}

// home is the index of the heaviest pools that sell a node for the lot, -1 for none.
func (w *world) home(l *lot) int {
	x := w.byWeight()
	for i := range x.pools {
		if x.sells(i, l.admit, l.view.kind) {
			return i
		}
	}
	return -1
}

// homeIn is home for a view that is tied to domains, 0 where all pools weigh the same.
func (w *world) homeIn(v *view, pins []pin) int {
	if len(w.byWeight().pools) < 2 {
		return 0
	}
	admit := w.pinned(v.admit, pins)
	if i := w.home(&lot{view: v, admit: admit}); i >= 0 {
		return i
	}
	return slices.IndexFunc(w.byWeight().pools, func(pools []*pool) bool {
		return slices.ContainsFunc(pools, func(p *pool) bool { return p.reserves(v.kind, admit) })
	})
}

// openAll makes new nodes for the lots, of the heaviest pools that take them.
func (a *attempt) openAll(lots []*lot) {
	a.openHomes(lots)
	for _, pools := range a.w.byWeight().pools {
		a.openIn(pools, lots)
	}
}

// openHomes makes the nodes first that light pools have to bring, because no heavier one sells any for those pods, and gives what room
// they leave to pods of heavier pools. A node that is opened anyway comes before one more, whatever the weight (spec core.md §3.1).
// Where heavier pools may come to their limits it waits: what they leave over is packed better together with those pods.
func (a *attempt) openHomes(lots []*lot) {
	all := a.w.byWeight()
	if len(all.pools) < 2 {
		return
	}
	at := make([][]*lot, len(all.pools))
	some := 0
	for _, l := range lots {
		if l.left == 0 {
			continue
		}
		if i := a.w.home(l); i >= 0 {
			if len(at[i]) == 0 {
				some++
			}
			at[i] = append(at[i], l)
		}
	}
	if some < 2 {
		return
	}
	lightest := len(at) - 1
	for len(at[lightest]) == 0 {
		lightest--
	}
	for i := range lightest {
		if !a.roomy(all.pools[i], at[i]) {
			return
		}
	}
	for i := lightest; i > 0; i-- {
		var guests []*lot
		for _, l := range slices.Concat(at[:i]...) {
			if all.sells(i, l.admit, l.view.kind) {
				guests = append(guests, l)
			}
		}
		if len(guests) == 0 {
			continue
		}
		before := len(a.bins)
		a.openIn(all.pools[i], at[i])
		a.fillBins(a.bins[before:], guests)
	}
}

// roomy reports whether the limits of the pools leave room for twice what the lots ask for, in each pool.
func (a *attempt) roomy(pools []*pool, lots []*lot) bool {
	var all resource.List
	for _, l := range lots {
		all = all.Add(l.view.kind.pod.Need.Times(2 * int64(l.left)))
	}
	return !slices.ContainsFunc(pools, func(p *pool) bool {
		return slices.Contains(p.Limited, limitNodes) || p.limitsPrice() || len(p.exceeded(a.usage[p.id], all)) > 0
	})
}

// openIn makes new nodes in pools of one weight.
func (a *attempt) openIn(pools []*pool, lots []*lot) {
	if !slices.ContainsFunc(lots, func(l *lot) bool { return l.left > 0 }) {
		return
	}
	a.openReserved(pools, lots)
	a.openPaid(pools, lots)
	if a.by == byFleets {
		a.openFleet(pools, lots)
	}
	for a.by != byShares && a.guided(pools, lots) {
	}
	for a.openTier(pools, lots) {
	}
}
