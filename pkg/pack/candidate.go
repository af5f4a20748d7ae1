package pack

import (
	"cmp"
	"math"
	"slices"

	"joiner/pkg/cover"
)

// asking are the admissions of the lots that wait, each once.
func asking(lots []*lot) []*admission {
	var asks []*admission
	for _, l := range lots {
		if l.left > 0 {
			asks = append(asks, l.admit)
		}
	}
	return distinct(asks)
}

// candidates are the offers worth a look: those that are available, within limits, and not beaten by a cheaper one of the
// pool that admits as much and holds as much.
func (a *attempt) candidates(pools []*pool, lots []*lot) []*offer {
	asks := asking(lots)
	var out []*offer
	whole := len(pools) == len(a.w.pools)
	for _, p := range pools {
		if len(p.sale) == 0 {
			continue
		}
		if a.w.ceiling == 0 && len(p.exceeded(a.usage[p.id], p.largest)) == 0 {
			out = append(out, p.undominated(asks)...)
			continue
		}
		whole = false
		all := slices.DeleteFunc(slices.Clone(p.sale), func(o *offer) bool {
			return a.allowance(o, 1) == 0 || len(p.exceeded(a.usage[p.id], o.model.typ.Capacity)) > 0
		})
		out = append(out, offersOf(undominated(all, p.concerned(asks)))...)
	}
	a.value(out, whole, lots)
	return a.useful(pools, out, lots)
}

// useful leaves out what costs more than a node that holds all that waits: it cannot hold more for its price. Where something else than
// the price bounds how many nodes there are of what, all are left.
func (a *attempt) useful(pools []*pool, cands []*offer, lots []*lot) []*offer {
	if a.w.ceiling > 0 || slices.ContainsFunc(pools, func(p *pool) bool { return len(p.Limited) > 0 || p.minValues() }) {
		return cands
	}
	all := make([]int64, len(a.w.dims))
	for _, l := range lots {
		if l.left > 0 && a.w.rationed(l.view) {
			return cands
		}
		for d, x := range l.view.kind.need {
			all[d] += x * int64(l.left)
		}
	}
	most := math.Inf(1)
	for _, o := range cands {
		if o.Price < most && atLeast(o.room, all) && o.suitsAll(lots) {
			most = o.Price
		}
	}
	if math.IsInf(most, 1) {
		return cands
	}
	return slices.DeleteFunc(slices.Clone(cands), func(o *offer) bool { return o.Price > most })
}

// suitsAll reports whether the labels of one node of the offer can be what all lots that wait want.
func (o *offer) suitsAll(lots []*lot) bool {
	open := o.model.open
	for _, l := range lots {
		if l.left == 0 {
			continue
		}
		alt := l.admit.into(o, open)
		if alt < 0 {
			return false
		}
		open, _ = narrow(open, l.admit.alternative[alt])
	}
	return true
}

// rationed reports whether rules may bound how many pods of the view one node takes.
func (w *world) rationed(v *view) bool {
	return len(v.host)+len(v.kind.pod.HostPorts) > 0 || slices.ContainsFunc(v.kind.matched, func(c int) bool { return w.counters[c].key == labelHost })
}

// leastValue is the part of the price of its share of a node that a pod is worth at least, so that a node is made for pods
// that would come for free beside others, once those others are gone.
const leastValue = 0.1

// value tells for each lot what one of its pods is worth. The candidates are whole where they are those of everything that is for sale.
func (a *attempt) value(cands []*offer, whole bool, lots []*lot) {
	r := a.w.sale // what is beaten is no cheaper
	if !whole {
		r = newRanking(cands, len(a.w.dims))
	}
	for _, l := range lots {
		l.value = noPrice
		if l.left == 0 {
			continue
		}
		if l.value = r.least(l.admit, l.view.kind); l.value < noPrice {
			l.value = max(l.value, 1e-12) // what is for free is worth something too
		}
		p := a.w.worth
		if y := p.prices.Value[p.of(l.view.kind, l.pins)]; l.value < noPrice {
			l.least = l.value
			if a.by != byShares {
				l.value = max(y, leastValue*l.value)
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

	room  []float64 // of the offer, in units of prices
	items []int32   // what may be on it, of the guide's items
	fits  []int     // how many of each
	basis cover.Basis
}

// hopes are the candidates, each with a score that is no worse than what it has to offer, and exactly that where pods follow others: what
// a node would hold becomes more then while pods are placed.
func (a *attempt) hopes(offers []*offer, lots []*lot) *queue {
	q := make(queue, 0, len(offers))
	if slices.ContainsFunc(lots, func(l *lot) bool { return l.left > 0 && l.view.follows() }) {
		for i, o := range offers {
			if c := a.candidate(i, o, lots); len(c.order) > 0 {
				q = append(q, c)
			}
		}
		return &q
	}
	g := newGauge(lots, len(a.w.dims))
	all := make([]candidate, len(offers))
	for i, o := range offers {
		if most := g.most(o); most > 0 {
			all[i] = candidate{index: i, offer: o, score: a.w.cost(o) / most}
			q = append(q, &all[i])
		}
	}
	return &q
}

// candidate is the offer with its order and score.
func (a *attempt) candidate(i int, o *offer, lots []*lot) *candidate {
	c := &candidate{index: i, offer: o}
	a.arrange(c, lots)
	if _, value := a.fill(c); value > 0 {
		c.score = a.w.cost(o) / value
	} else {
		c.order = nil
	}
	return c
}

// arrange finds the lots that the candidate may hold.
func (a *attempt) arrange(c *candidate, lots []*lot) {
	type dense struct {
		lot     *lot
		density float64
	}
	some := make([]dense, 0, len(lots))
	for _, l := range lots {
		if l.left == 0 || l.admit.check(c.offer) < 0 {
			continue
		}
		if s := share(l.view.kind.need, c.offer.room); s <= 1 {
			some = append(some, dense{l, l.value / max(s, 1e-9)})
		}
	}
	slices.SortFunc(some, func(x, y dense) int {
		return cmp.Or(cmp.Compare(y.density, x.density), cmp.Compare(x.lot.id, y.lot.id))
	})
	c.order = make([]*lot, len(some))
	for i, x := range some {
		c.order[i] = x.lot
	}
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
