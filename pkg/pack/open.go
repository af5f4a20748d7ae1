package pack

import (
	"container/heap"
	"fmt"
	"math"
	"slices"

	"joiner/pkg/require"
	"joiner/pkg/resource"
)

// open makes new nodes for the lots, in the heaviest pools that take them.
func (a *attempt) open(lots []*lot) {
	if slices.ContainsFunc(lots, func(l *lot) bool { return l.view.kind.stays }) {
		lots = slices.DeleteFunc(slices.Clone(lots), func(l *lot) bool { return l.view.kind.stays })
	}
	if a.w.worth == nil {
		a.w.worth = a.w.price(func(k *kind) int { return len(a.rest[k.id]) })
	}
	a.openAll(lots)
	if a.w.ceiling > 0 && slices.ContainsFunc(lots, func(l *lot) bool { return l.left > 0 }) {
		before := a.w.ceiling
		a.w.ceiling = 0 // it never leaves a pod without a home
		a.openAll(lots)
		a.w.ceiling = before
	}
}

// openTier makes new nodes in pools of one weight. Each time it takes the offer with the lowest price for what it would
// hold, where a pod is worth what it costs at least anywhere. It returns true when another try may place more.
func (a *attempt) openTier(pools []*pool, lots []*lot) bool {
	q := a.hopes(a.candidates(pools, lots), lots)
	heap.Init(q)
	opened, limited := 0, false
	for q.Len() > 0 {
		c := heap.Pop(q).(*candidate)
		if c.order == nil {
			a.arrange(c, lots)
		}
		takes, value := a.fill(c)
		if value <= 0 {
			continue
		}
		// Scores only get worse while pods are placed, so an old score that is not the best needs no second look.
		if c.score = a.w.cost(c.offer) / value; q.Len() > 0 && less((*q)[0], c) {
			heap.Push(q, c)
			continue
		}
		n, full := a.apply(c.offer, takes, math.MaxInt)
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

// limited reports whether limits, of pools or of the pass, may have kept it from making nodes.
func (a *attempt) limited() bool {
	return a.atMost() || slices.ContainsFunc(a.w.pools, func(p *pool) bool { return len(p.Limited) > 0 })
}

// take is n pods of a lot on a new node.
type take struct {
	lot    *lot
	alt, n int
}

// draft is a new node while it is being filled.
type draft struct {
	a     *attempt
	offer *offer
	host  *bin // instead of an offer: room that there is
	room  []int64
	count map[int]int
	anti  map[int]int
	open  require.Set
	site  site
	takes []take
	value float64
	near  bool // some lot could join once others are there
}

func (a *attempt) draft(o *offer) *draft {
	d := &draft{a: a, offer: o, room: slices.Clone(o.room), open: o.model.open}
	d.site = site{
		limit: func(i int) int {
			n := math.MaxInt32
			for _, t := range d.takes {
				n = min(n, t.lot.view.limit(i))
			}
			return n
		},
		count: func(i int) int { return d.count[i] }, anti: func(i int) int { return d.anti[i] }, total: a.total, ports: slices.Clone(o.ports),
	}
	return d
}

// take puts up to n more pods of the lot on the node, and returns how many.
func (d *draft) take(l *lot, n int) int {
	have := -1
	for i, t := range d.takes {
		if t.lot == l {
			have = i
			n = min(n, l.left-t.n)
		}
	}
	if n = min(n, l.left, fits(l.view.kind.need, d.room)); n <= 0 || have >= 0 && l.whole {
		return 0
	}
	if n = min(n, d.a.w.most(l.view, d.site)); n == 0 || l.whole && n < l.left {
		d.near = d.near || len(l.view.host) > 0
		return 0
	}
	var alt int
	if d.host != nil {
		alt = d.a.w.onHost(l.admit, d.host)
	} else {
		alt = l.admit.into(d.offer, d.open)
	}
	if alt < 0 || have >= 0 && d.takes[have].alt != alt {
		return 0
	}
	d.add(l, alt, n)
	d.value += float64(n) * l.value
	if have >= 0 {
		d.takes[have].n += n
	} else {
		d.takes = append(d.takes, take{l, alt, n})
	}
	return n
}

// fill tells what a new node of the candidate's offer would hold of what is left, and what that is worth.
func (a *attempt) fill(c *candidate) ([]take, float64) {
	d := a.draft(c.offer)
	for _, l := range c.order {
		d.take(l, l.left)
	}
	if d.near {
		for _, l := range c.order {
			d.take(l, l.left)
		}
	}
	return d.takes, d.value
}

func (d *draft) add(l *lot, alt, n int) {
	k := l.view.kind
	for i, x := range k.need {
		d.room[i] -= x * int64(n)
	}
	d.site.ports = append(d.site.ports, k.pod.HostPorts...)
	d.open, _ = narrow(d.open, l.admit.alternative[alt])
	for _, c := range k.matched {
		if d.a.w.counters[c].key == labelHost {
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

// openLabels are the labels of the model's nodes that the pods of a node decide: those for which the pool's author or the instance type
// leaves several values, but for those in which offers differ, for a node is of one offer.
func (m *model) openLabels() require.Set {
	var s require.Set
	for _, key := range m.pool.open {
		if r, ok := m.label(key); ok {
			s = s.And(r)
		}
	}
	for _, r := range m.typ.Requirements.All() {
		if _, single := r.Single(); single || len(r.Values) == 0 || perOffer(r.Key) {
			continue
		}
		r, _ = m.label(r.Key)
		if _, single := r.Single(); !single {
			s = s.And(r)
		}
	}
	return s
}

// apply makes nodes like this one, up to most, while there are pods for more. It returns how many, and whether the pool's limits or
// its minValues stopped it.
func (a *attempt) apply(o *offer, takes []take, most int) (opened int, full bool) {
	p := o.model.pool
	times := most
	for _, t := range takes {
		times = min(times, t.lot.left/t.n)
		if slices.ContainsFunc(t.lot.view.host, func(r rule) bool { return r.what == follow }) {
			times = 1
		}
	}
	if times = a.allowance(o, times); times == 0 {
		return 0, true
	}
	takes, capacity, low := a.flexible(o, takes)
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
		b := a.newBin(o, capacity)
		b.name = fmt.Sprintf("new-%05d", a.opened)
		b.low = low
		for _, t := range takes {
			a.put(t.lot, b, t.alt, t.n)
		}
		a.bins = append(a.bins, b)
		a.opened++
		opened++
		if id, amount := o.slot(); amount > 0 {
			a.slots[id] -= amount
		}
		if a.w.ceiling > 0 {
			a.spot.add(o.Offer, o.model.typ.Capacity.CPU, 1)
		}
		a.usage[p.id].list = a.usage[p.id].list.Add(capacity)
		a.usage[p.id].nodes++
	}
	return opened, false
}

// newBin is an empty new node that takes the capacity of its pool's limits.
func (a *attempt) newBin(o *offer, capacity resource.List) *bin {
	return &bin{
		offer: o, takes: capacity, taints: o.model.pool.Taints, open: o.model.open, room: slices.Clone(o.room),
		ports: slices.Clone(o.ports), count: make([]int, len(a.w.counters)), anti: make([]int, len(a.w.counters)),
	}
}
