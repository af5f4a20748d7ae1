package binpack

import (
	"cmp"
	"math"
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/lowerbound"
	"joiner.sh/pkg/scheduling/podclass"
)

// waitingAdmissions are the admissions of the batches that wait, each once.
func waitingAdmissions(batches []*podBatch) []*podclass.Admission {
	var asks []*podclass.Admission
	for _, l := range batches {
		if l.left > 0 {
			asks = append(asks, l.admit)
		}
	}
	return podclass.DistinctAdmissions(asks)
}

// candidateOffers are the offers worth a look: those that are available, within limits, and not beaten by a cheaper one
// of the pool that admits as much and holds as much.
func (op nodeOpener) candidateOffers(pools []*capacity.Pool, batches []*podBatch) []*capacity.Offering {
	asks := waitingAdmissions(batches)
	var out []*capacity.Offering
	whole := len(pools) == len(op.a.w.catalog.Pools)
	for _, p := range pools {
		if len(p.Sale) == 0 {
			continue
		}
		if op.a.used.spotCeiling == 0 && !op.a.used.exceedsLimits(p, p.Largest) {
			out = append(out, p.UndominatedFor(asks)...)
			continue
		}
		whole = false
		all := slices.DeleteFunc(slices.Clone(p.Sale), func(o *capacity.Offering) bool {
			return op.a.used.spotAllowance(o, 1) == 0 || op.a.used.exceedsLimits(p, o.InstanceType.Type.Capacity)
		})
		out = append(out, capacity.OffersOf(capacity.FilterUndominated(all, p.ConcernedAdmissions(asks)))...)
	}
	op.setPodValues(out, whole, batches)
	return op.withoutOversized(pools, out, batches)
}

// withoutOversized leaves out what costs more than a node that holds all that waits: it cannot hold more for its price.
// Where something else than the price bounds how many nodes there are of what, all are left.
func (op nodeOpener) withoutOversized(pools []*capacity.Pool, cands []*capacity.Offering,
	batches []*podBatch) []*capacity.Offering {
	if op.a.used.spotCeiling > 0 || slices.ContainsFunc(pools,
		func(p *capacity.Pool) bool { return len(p.Limited) > 0 || p.MinValues() }) {
		return cands
	}
	all := make([]int64, len(op.a.w.dims))
	for _, l := range batches {
		if l.left > 0 && op.a.w.topology.HasHostRules(l.view) {
			return cands
		}
		for d, x := range l.view.Class.Need {
			all[d] += x * int64(l.left)
		}
	}
	most := math.Inf(1)
	for _, o := range cands {
		if o.Price < most && capacity.AtLeast(o.Room, all) && suitsAll(o, batches) {
			most = o.Price
		}
	}
	if math.IsInf(most, 1) {
		return cands
	}
	return slices.DeleteFunc(slices.Clone(cands), func(o *capacity.Offering) bool { return o.Price > most })
}

// suitsAll reports whether the labels of one node of the offer can be what all batches that wait want.
func suitsAll(o *capacity.Offering, batches []*podBatch) bool {
	open := o.InstanceType.Open
	for _, l := range batches {
		if l.left == 0 {
			continue
		}
		alt := o.FirstAlternativeBeside(l.admit, open)
		if alt < 0 {
			return false
		}
		open, _ = capacity.NarrowOpenLabels(open, l.admit.Alternatives[alt])
	}
	return true
}

// leastValue is the part of the price of its share of a node that a pod is worth at least, so that a node is made for
// pods that would come for free beside others, once those others are gone.
const leastValue = 0.1

// setPodValues writes for each batch what one of its pods is worth. The candidates are whole where they are those of
// everything that is for sale.
func (op nodeOpener) setPodValues(cands []*capacity.Offering, whole bool, batches []*podBatch) {
	r := op.a.w.catalog.Sale // what is beaten is no cheaper
	if !whole {
		r = capacity.NewRanking(cands, len(op.a.w.dims))
	}
	values := podPricesFor(op.a).values()
	for _, l := range batches {
		l.value = capacity.NoPrice
		if l.left == 0 {
			continue
		}
		if l.value = r.MinShare(l.admit, l.view.Class); l.value < capacity.NoPrice {
			l.value = max(l.value, 1e-12) // what is for free is worth something too
		}
		if l.value < capacity.NoPrice {
			l.least = l.value
			if op.a.strategy.guide != byCostShare {
				l.value = max(values.ofBatch(l), leastValue*l.value)
			}
		}
	}
}

// candidate is an offer with the batches it may hold, best use of its room first.
type candidate struct {
	index int
	offer *capacity.Offering
	host  *capacity.Bin // instead of an offer: room that there is
	order []*podBatch
	score float64 // USD per hour for each USD per hour of value

	room  []float64 // of the offer, in units of prices
	items []int32   // what may be on it, of the guide's items
	fits  []int     // how many of each
	basis lowerbound.Basis
}

// scoreCandidates are the candidates, each with a score that is no worse than what it has to offer, and exactly that
// where pods follow others: what a node would hold becomes more then while pods are placed.
func (op nodeOpener) scoreCandidates(offers []*capacity.Offering, batches []*podBatch) *candidateQueue {
	q := make(candidateQueue, 0, len(offers))
	if slices.ContainsFunc(batches, func(l *podBatch) bool { return l.left > 0 && l.view.HasHostAffinity() }) {
		for i, o := range offers {
			if c := op.newCandidate(i, o, batches); len(c.order) > 0 {
				q = append(q, c)
			}
		}
		return &q
	}
	g := newGauge(batches, len(op.a.w.dims))
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
func (op nodeOpener) newCandidate(i int, o *capacity.Offering, batches []*podBatch) *candidate {
	c := &candidate{index: i, offer: o}
	op.arrangeBatches(c, batches)
	if _, value := op.fillNode(c); value > 0 {
		c.score = op.a.offerCost(o) / value
	} else {
		c.order = nil
	}
	return c
}

// arrangeBatches finds the batches that the candidate may hold.
func (op nodeOpener) arrangeBatches(c *candidate, batches []*podBatch) {
	type dense struct {
		batch   *podBatch
		density float64
	}
	some := make([]dense, 0, len(batches))
	for _, l := range batches {
		if l.left == 0 || c.offer.FirstAlternative(l.admit) < 0 {
			continue
		}
		if s := capacity.DominantShare(l.view.Class.Need, c.offer.Room); s <= 1 {
			some = append(some, dense{l, l.value / max(s, 1e-9)})
		}
	}
	slices.SortFunc(some, func(x, y dense) int {
		return cmp.Or(cmp.Compare(y.density, x.density), cmp.Compare(x.batch.id, y.batch.id))
	})
	c.order = make([]*podBatch, len(some))
	for i, x := range some {
		c.order[i] = x.batch
	}
}

type candidateQueue []*candidate

// Len is for container/heap.
func (q candidateQueue) Len() int { return len(q) }

// Less is for container/heap.
func (q candidateQueue) Less(i, j int) bool { return candidateLess(q[i], q[j]) }

// Swap is for container/heap.
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
	batches []*podBatch
	order   [][]int // by resource: the batches, best use of it first
	fits    []int   // by batch: how many pods the offer holds, of it alone
}

func newGauge(batches []*podBatch, dims int) *upperBound {
	g := &upperBound{}
	for _, l := range batches {
		if l.left > 0 {
			g.batches = append(g.batches, l)
		}
	}
	g.fits = make([]int, len(g.batches))
	for d := range dims {
		density := make([]float64, len(g.batches))
		order := make([]int, len(g.batches))
		some := false
		for i, l := range g.batches {
			order[i], density[i] = i, math.Inf(1)
			if x := l.view.Class.Need[d]; x > 0 {
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
func (g *upperBound) maxWorth(o *capacity.Offering) float64 {
	sum := 0.0
	for i, l := range g.batches {
		g.fits[i] = 0
		if o.FirstAlternative(l.admit) >= 0 {
			g.fits[i] = min(l.left, capacity.FitCount(l.view.Class.Need, o.Room))
			sum += float64(g.fits[i]) * l.value
		}
	}
	for d, order := range g.order {
		if order == nil || sum == 0 {
			continue
		}
		room, value := float64(o.Room[d]), 0.0
		for _, i := range order {
			n := float64(g.fits[i])
			if x := float64(g.batches[i].view.Class.Need[d]); x > 0 {
				n = min(n, room/x)
				room -= n * x
			}
			value += n * g.batches[i].value
			if room <= 0 {
				break
			}
		}
		sum = min(sum, value)
	}
	return sum * (1 + 1e-9)
}
