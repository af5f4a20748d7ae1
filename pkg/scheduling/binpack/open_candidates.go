package binpack

import (
	"cmp"
	"math"
	"slices"

	"joiner/pkg/scheduling/lowerbound"
)

// waitingAdmissions are the admissions of the lots that wait, each once.
func waitingAdmissions(lots []*podBatch) []*nodeAdmission {
	var asks []*nodeAdmission
	for _, l := range lots {
		if l.left > 0 {
			asks = append(asks, l.admit)
		}
	}
	return distinctAdmissions(asks)
}

// candidateOffers are the offers worth a look: those that are available, within limits, and not beaten by a cheaper one
// of the pool that admits as much and holds as much.
func (op *nodeOpener) candidateOffers(pools []*pool, lots []*podBatch) []*poolOffering {
	asks := waitingAdmissions(lots)
	var out []*poolOffering
	whole := len(pools) == len(op.a.w.catalog.pools)
	for _, p := range pools {
		if len(p.sale) == 0 {
			continue
		}
		if op.a.used.spotCeiling == 0 && !op.a.used.exceedsLimits(p, p.largest) {
			out = append(out, p.undominatedFor(asks)...)
			continue
		}
		whole = false
		all := slices.DeleteFunc(slices.Clone(p.sale), func(o *poolOffering) bool {
			return op.a.used.spotAllowance(o, 1) == 0 || op.a.used.exceedsLimits(p, o.model.typ.Capacity)
		})
		out = append(out, offersOf(filterUndominated(all, p.concernedAdmissions(asks)))...)
	}
	op.podValues(out, whole, lots)
	return op.withoutOversized(pools, out, lots)
}

// withoutOversized leaves out what costs more than a node that holds all that waits: it cannot hold more for its price.
// Where something else than the price bounds how many nodes there are of what, all are left.
func (op *nodeOpener) withoutOversized(pools []*pool, cands []*poolOffering, lots []*podBatch) []*poolOffering {
	if op.a.used.spotCeiling > 0 || slices.ContainsFunc(pools,
		func(p *pool) bool { return len(p.Limited) > 0 || p.minValues() }) {
		return cands
	}
	all := make([]int64, len(op.a.w.dims))
	for _, l := range lots {
		if l.left > 0 && op.a.w.topology.hasHostRules(l.view) {
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
	return slices.DeleteFunc(slices.Clone(cands), func(o *poolOffering) bool { return o.Price > most })
}

// suitsAll reports whether the labels of one node of the offer can be what all lots that wait want.
func (o *poolOffering) suitsAll(lots []*podBatch) bool {
	open := o.model.open
	for _, l := range lots {
		if l.left == 0 {
			continue
		}
		alt := l.admit.firstAlternativeOn(o, open)
		if alt < 0 {
			return false
		}
		open, _ = narrowOpenLabels(open, l.admit.alternative[alt])
	}
	return true
}

// leastValue is the part of the price of its share of a node that a pod is worth at least, so that a node is made for
// pods that would come for free beside others, once those others are gone.
const leastValue = 0.1

// podValues tells for each lot what one of its pods is worth. The candidates are whole where they are those of
// everything that is for sale.
func (op *nodeOpener) podValues(cands []*poolOffering, whole bool, lots []*podBatch) {
	r := op.a.w.catalog.sale // what is beaten is no cheaper
	if !whole {
		r = newRanking(cands, len(op.a.w.dims))
	}
	for _, l := range lots {
		l.value = noPrice
		if l.left == 0 {
			continue
		}
		if l.value = r.minShare(l.admit, l.view.kind); l.value < noPrice {
			l.value = max(l.value, 1e-12) // what is for free is worth something too
		}
		p := op.a.w.worth
		if y := p.prices.Value[p.classOf(l.view.kind, l.pins)]; l.value < noPrice {
			l.least = l.value
			if op.a.strategy.guide != byCostShare {
				l.value = max(y, leastValue*l.value)
			}
		}
	}
}

// candidate is an offer with the lots it may hold, best use of its room first.
type candidate struct {
	index int
	offer *poolOffering
	order []*podBatch
	score float64 // USD per hour for each USD per hour of value

	room  []float64 // of the offer, in units of prices
	items []int32   // what may be on it, of the guide's items
	fits  []int     // how many of each
	basis lowerbound.Basis
}

// scoreCandidates are the candidates, each with a score that is no worse than what it has to offer, and exactly that
// where pods follow others: what a node would hold becomes more then while pods are placed.
func (op *nodeOpener) scoreCandidates(offers []*poolOffering, lots []*podBatch) *candidateQueue {
	q := make(candidateQueue, 0, len(offers))
	if slices.ContainsFunc(lots, func(l *podBatch) bool { return l.left > 0 && l.view.hasHostAffinity() }) {
		for i, o := range offers {
			if c := op.newCandidate(i, o, lots); len(c.order) > 0 {
				q = append(q, c)
			}
		}
		return &q
	}
	g := newGauge(lots, len(op.a.w.dims))
	all := make([]candidate, len(offers))
	for i, o := range offers {
		if most := g.maxWorth(o); most > 0 {
			all[i] = candidate{index: i, offer: o, score: op.a.offerCost(o) / most}
			q = append(q, &all[i])
		}
	}
	return &q
}

// newCandidate is the offer with its order and score.
func (op *nodeOpener) newCandidate(i int, o *poolOffering, lots []*podBatch) *candidate {
	c := &candidate{index: i, offer: o}
	op.arrangeLots(c, lots)
	if _, value := op.fillNode(c); value > 0 {
		c.score = op.a.offerCost(o) / value
	} else {
		c.order = nil
	}
	return c
}

// arrangeLots finds the lots that the candidate may hold.
func (op *nodeOpener) arrangeLots(c *candidate, lots []*podBatch) {
	type dense struct {
		lot     *podBatch
		density float64
	}
	some := make([]dense, 0, len(lots))
	for _, l := range lots {
		if l.left == 0 || l.admit.firstAlternative(c.offer) < 0 {
			continue
		}
		if s := dominantShare(l.view.kind.need, c.offer.room); s <= 1 {
			some = append(some, dense{l, l.value / max(s, 1e-9)})
		}
	}
	slices.SortFunc(some, func(x, y dense) int {
		return cmp.Or(cmp.Compare(y.density, x.density), cmp.Compare(x.lot.id, y.lot.id))
	})
	c.order = make([]*podBatch, len(some))
	for i, x := range some {
		c.order[i] = x.lot
	}
}

type candidateQueue []*candidate

func (q candidateQueue) Len() int { return len(q) }

func (q candidateQueue) Less(i, j int) bool { return candidateLess(q[i], q[j]) }

func (q candidateQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is for container/heap.
func (q *candidateQueue) Push(x any) { *q = append(*q, x.(*candidate)) }

// Pop is for container/heap.
func (q *candidateQueue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

func candidateLess(a, b *candidate) bool {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.index, b.index)) < 0
}

// upperBound tells quickly what nodes would hold at most: fractions of pods, and of one resource alone as much as there
// is.
type upperBound struct {
	lots  []*podBatch
	order [][]int // by resource: the lots, best use of it first
	fits  []int   // by lot: how many pods the offer holds, of it alone
}

func newGauge(lots []*podBatch, dims int) *upperBound {
	g := &upperBound{}
	for _, l := range lots {
		if l.left > 0 {
			g.lots = append(g.lots, l)
		}
	}
	g.fits = make([]int, len(g.lots))
	for d := range dims {
		density := make([]float64, len(g.lots))
		order := make([]int, len(g.lots))
		some := false
		for i, l := range g.lots {
			order[i], density[i] = i, math.Inf(1)
			if x := l.view.kind.need[d]; x > 0 {
				density[i], some = l.value/float64(x), true
			}
		}
		if some {
			slices.SortFunc(order, func(x, y int) int {
				return cmp.Or(cmp.Compare(density[y], density[x]),
					cmp.Compare(x, y))
			})
			g.order = append(g.order, order)
		} else {
			g.order = append(g.order, nil)
		}
	}
	return g
}

// maxWorth is more than what a new node of the offer would hold can be worth, 0 where it holds nothing.
func (g *upperBound) maxWorth(o *poolOffering) float64 {
	sum := 0.0
	for i, l := range g.lots {
		g.fits[i] = 0
		if l.admit.firstAlternative(o) >= 0 {
			g.fits[i] = min(l.left, fitCount(l.view.kind.need, o.room))
			sum += float64(g.fits[i]) * l.value
		}
	}
	for d, order := range g.order {
		if order == nil || sum == 0 {
			continue
		}
		room, value := float64(o.room[d]), 0.0
		for _, i := range order {
			n := float64(g.fits[i])
			if x := float64(g.lots[i].view.kind.need[d]); x > 0 {
				n = min(n, room/x)
				room -= n * x
			}
			value += n * g.lots[i].value
			if room <= 0 {
				break
			}
		}
		sum = min(sum, value)
	}
	return sum * (1 + 1e-9)
}
