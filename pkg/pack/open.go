package pack

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"

	"joiner/pkg/cluster"
	"joiner/pkg/require"
)

// open makes new nodes for the lots, in the heaviest pools that take them.
func (a *attempt) open(lots []*lot) {
	for start := 0; start < len(a.w.pools); {
		end := start
		for end < len(a.w.pools) && a.w.pools[end].Weight == a.w.pools[start].Weight {
			end++
		}
		for a.openTier(a.w.pools[start:end], lots) {
		}
		start = end
	}
}

// openTier makes new nodes in pools of one weight. Each time it takes the offer with the lowest price for what it would
// hold, where a pod is worth what it costs at least anywhere. It returns true when another try may place more.
func (a *attempt) openTier(pools []*pool, lots []*lot) bool {
	cands := a.candidates(pools, lots)
	q := &queue{}
	for i, o := range cands {
		if c := a.candidate(i, o, lots); len(c.order) > 0 {
			*q = append(*q, c)
		}
	}
	heap.Init(q)
	opened, limited := 0, false
	for q.Len() > 0 {
		c := heap.Pop(q).(*candidate)
		takes, value := a.fill(c)
		if value <= 0 {
			continue
		}
		// Scores only get worse while pods are placed, so an old score that is not the best needs no second look.
		if c.score = c.offer.Price / value; q.Len() > 0 && less((*q)[0], c) {
			heap.Push(q, c)
			continue
		}
		n, full := a.apply(c.offer, takes)
		opened += n
		limited = limited || full
		if a.atMost() {
			return false
		}
		if !full {
			heap.Push(q, c)
		}
	}
	return limited && opened > 0 || loosen(lots)
}

// loosen lets lots that found no node for all their pods together use one that holds some of them.
func loosen(lots []*lot) bool {
	found := false
	for _, l := range lots {
		if l.whole && l.left > 0 {
			l.whole, found = false, true
		}
	}
	return found
}

// atMost reports whether the pass may make no more nodes.
func (a *attempt) atMost() bool {
	return a.w.s.Rules.MaxClaims > 0 && a.opened >= a.w.s.Rules.MaxClaims
}

// candidates are the offers worth a look: those that are available, within limits, and not beaten by a cheaper one that
// admits as much and holds as much.
func (a *attempt) candidates(pools []*pool, lots []*lot) []*offer {
	bit := map[*admission]int{}
	var asks []*admission
	for _, l := range lots {
		if _, ok := bit[l.admit]; !ok && l.left > 0 {
			bit[l.admit] = len(asks)
			asks = append(asks, l.admit)
		}
	}
	var out []*offer
	for _, p := range pools {
		type entry struct {
			offer *offer
			bits  []uint64
		}
		var all, kept []entry
		for _, m := range p.models {
			if len(p.exceeded(a.usage[p.id], m.typ.Capacity)) > 0 {
				continue
			}
			for _, o := range m.sells {
				if !o.Available {
					continue
				}
				e := entry{o, make([]uint64, (len(asks)+63)/64)}
				some := false
				for i, ask := range asks {
					if ask.check(o) >= 0 {
						e.bits[i/64] |= 1 << (i % 64)
						some = true
					}
				}
				if some {
					all = append(all, e)
				}
			}
		}
		slices.SortFunc(all, func(x, y entry) int {
			return cmp.Or(cmp.Compare(x.offer.Price, y.offer.Price), slices.Compare(y.offer.room, x.offer.room), cmp.Compare(x.offer.id, y.offer.id))
		})
		for _, e := range all {
			if !slices.ContainsFunc(kept, func(k entry) bool { return covers(k.bits, e.bits) && atLeast(k.offer.room, e.offer.room) }) {
				kept = append(kept, e)
				out = append(out, e.offer)
			}
		}
	}
	a.value(out, lots)
	return out
}

func covers(a, b []uint64) bool {
	for i := range b {
		if b[i]&^a[i] != 0 {
			return false
		}
	}
	return true
}

func atLeast(a, b []int64) bool {
	for i := range b {
		if a[i] < b[i] {
			return false
		}
	}
	return true
}

// value tells for each lot the lowest price at which one of its pods gets its part of a node.
func (a *attempt) value(cands []*offer, lots []*lot) {
	for _, l := range lots {
		l.value = noPrice
		if l.left == 0 {
			continue
		}
		for _, o := range cands {
			if l.admit.check(o) < 0 {
				continue
			}
			if s := share(l.view.kind.need, o.room); s <= 1 {
				l.value = min(l.value, max(o.Price, 1e-6)*s)
			}
		}
	}
}

// candidate is an offer with the lots it may hold, best use of its room first.
type candidate struct {
	index int
	offer *offer
	order []*lot
	score float64 // USD per hour for each USD per hour of value
}

func (a *attempt) candidate(i int, o *offer, lots []*lot) *candidate {
	c := &candidate{index: i, offer: o}
	density := make([]float64, len(lots))
	for j, l := range lots {
		if l.left == 0 || l.admit.check(o) < 0 {
			continue
		}
		if s := share(l.view.kind.need, o.room); s <= 1 {
			density[j] = l.value / max(s, 1e-9)
			c.order = append(c.order, l)
		}
	}
	slices.SortFunc(c.order, func(x, y *lot) int {
		return cmp.Or(cmp.Compare(density[y.id], density[x.id]), cmp.Compare(x.id, y.id))
	})
	if _, value := a.fill(c); value > 0 {
		c.score = o.Price / value
	} else {
		c.order = nil
	}
	return c
}

type queue []*candidate

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return less(q[i], q[j]) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push is for container/heap.
func (q *queue) Push(x any) { *q = append(*q, x.(*candidate)) }

// Pop is for container/heap.
func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

func less(a, b *candidate) bool {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.index, b.index)) < 0
}

// take is n pods of a lot on a new node.
type take struct {
	lot    *lot
	alt, n int
}

// draft is a new node while it is being filled.
type draft struct {
	room  []int64
	count map[int]int
	anti  map[int]int
	ports []cluster.HostPort
	open  require.Set
}

// fill tells what a new node of the candidate's offer would hold of what is left, and what that is worth.
func (a *attempt) fill(c *candidate) ([]take, float64) {
	d := draft{room: slices.Clone(c.offer.room), ports: slices.Clone(c.offer.ports), open: c.offer.model.openLabels()}
	s := site{count: func(i int) int { return d.count[i] }, anti: func(i int) int { return d.anti[i] }, total: a.total}
	var takes []take
	var value float64
	near := false
	for round := 0; round == 0 || round == 1 && near; round++ {
		for _, l := range c.order {
			n := min(l.left, fits(l.view.kind.need, d.room))
			if n == 0 || round == 1 && slices.ContainsFunc(takes, func(t take) bool { return t.lot == l }) {
				continue
			}
			s.ports = d.ports
			if n = min(n, a.w.most(l.view, s)); n == 0 || l.whole && n < l.left {
				near = near || len(l.view.host) > 0
				continue
			}
			alt := l.admit.into(c.offer, d.open)
			if alt < 0 {
				continue
			}
			d.add(a.w, l, alt, n)
			takes = append(takes, take{l, alt, n})
			value += float64(n) * l.value
		}
	}
	return takes, value
}

func (d *draft) add(w *world, l *lot, alt, n int) {
	k := l.view.kind
	for i, x := range k.need {
		d.room[i] -= x * int64(n)
	}
	d.ports = append(d.ports, k.pod.HostPorts...)
	d.open, _ = narrow(d.open, l.admit.alternative[alt])
	for _, c := range k.matched {
		if w.counters[c].key == labelHost {
			if d.count == nil {
				d.count = map[int]int{}
			}
			d.count[c] += n
		}
	}
	for _, r := range l.view.host {
		if r.what == avoid && r.required {
			if d.anti == nil {
				d.anti = map[int]int{}
			}
			d.anti[r.counter] += n
		}
	}
}

// openLabels are the custom labels of the model's nodes for which pods may choose a value.
func (m *model) openLabels() require.Set {
	var s require.Set
	for _, key := range m.pool.open {
		if r, ok := m.known.Get(key); ok {
			s = s.And(r)
		}
	}
	return s
}

// apply makes nodes like this one while there are pods for more. It returns how many, and whether the pool's limits or
// its minValues stopped it.
func (a *attempt) apply(o *offer, takes []take) (opened int, full bool) {
	p := o.model.pool
	times := takes[0].lot.left / takes[0].n
	for _, t := range takes {
		times = min(times, t.lot.left/t.n)
		if slices.ContainsFunc(t.lot.view.host, func(r rule) bool { return r.what == follow }) {
			times = 1
		}
	}
	takes, capacity := a.flexible(o, takes)
	if takes == nil {
		return 0, true
	}
	for range times {
		if len(p.exceeded(a.usage[p.id], capacity)) > 0 {
			return opened, true
		}
		if a.atMost() {
			return opened, false
		}
		b := &bin{
			name: fmt.Sprintf("new-%05d", a.opened), offer: o, takes: capacity, taints: p.Taints, open: o.model.openLabels(),
			room: slices.Clone(o.room), ports: slices.Clone(o.ports),
			count: make([]int, len(a.w.counters)), anti: make([]int, len(a.w.counters)),
		}
		for _, t := range takes {
			a.put(t.lot, b, t.alt, t.n)
		}
		a.bins = append(a.bins, b)
		a.opened++
		opened++
		a.usage[p.id].list = a.usage[p.id].list.Add(capacity)
		a.usage[p.id].nodes++
	}
	return opened, false
}
