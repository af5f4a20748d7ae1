package packing

import (
	"cmp"
	"math"
	"slices"

	"joiner.sh/pkg/model/rounding"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
)

// waitingAdmissions are the admissions of the batches that wait, each once.
func waitingAdmissions(batches []*PodBatch) []*podclass.Admission {
	var asks []*podclass.Admission
	for _, batch := range batches {
		if batch.Left > 0 {
			asks = append(asks, batch.Admit)
		}
	}
	return podclass.DistinctAdmissions(asks)
}

// CandidateOfferings are the offerings worth a look: those that are available, within limits, and not beaten by a
// cheaper one of the pool that admits as much and holds as much.
func (op NodeOpener) CandidateOfferings(pools []*capacity.OfferingPool, batches []*PodBatch) []*capacity.Offering {
	asks := waitingAdmissions(batches)
	var out []*capacity.Offering
	whole := len(pools) == len(op.A.W.Catalog.Pools)
	for _, p := range pools {
		if len(p.Sale) == 0 {
			continue
		}
		if op.A.Used.SpotCeiling == 0 && !op.A.Used.ExceedsLimits(p, p.Largest) {
			out = append(out, p.UndominatedFor(asks)...)
			continue
		}
		whole = false
		exceeds := op.A.Used.limitsOfTypes(p)
		all := slices.DeleteFunc(slices.Clone(p.Sale), func(o *capacity.Offering) bool {
			return exceeds(o.InstanceType) || op.A.Used.SpotCeiling > 0 && op.A.Used.spotAllowance(o, 1) == 0
		})
		out = append(out, p.FilterUndominated(all, asks)...)
	}
	op.setPodValues(out, whole, batches)
	return op.withoutOversized(pools, out, batches)
}

// withoutOversized leaves out what costs more than a node that holds all that waits: it cannot hold more for its price.
// Where something else than the price bounds how many nodes there are of what, all are left.
func (op NodeOpener) withoutOversized(pools []*capacity.OfferingPool, cands []*capacity.Offering,
	batches []*PodBatch) []*capacity.Offering {
	if op.A.Used.SpotCeiling > 0 || slices.ContainsFunc(pools,
		func(p *capacity.OfferingPool) bool { return len(p.Limited) > 0 || p.MinValues() }) {
		return cands
	}
	all := make([]int64, len(op.A.W.Dims))
	for _, batch := range batches {
		if batch.Left > 0 && op.A.W.Topology.HasHostRules(batch.View) {
			return cands
		}
		for d, x := range batch.View.Class.Need {
			all[d] += x * int64(batch.Left)
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

// suitsAll reports whether the labels of one node of the offering can be what all batches that wait want.
func suitsAll(o *capacity.Offering, batches []*PodBatch) bool {
	open := o.InstanceType.Open
	for _, batch := range batches {
		if batch.Left == 0 {
			continue
		}
		alt := o.FirstAlternativeBeside(batch.Admit, open)
		if alt < 0 {
			return false
		}
		open, _ = capacity.NarrowOpenLabels(open, batch.Admit.Alternatives[alt])
	}
	return true
}

// leastValue is the part of the price of its share of a node that a pod is worth at least, so that a node is made for
// pods that would come for free beside others, once those others are gone. Half costs 0.03 % less in the mean of the
// families of infra/lab/ablation but 1.4 % more in one half-empty cluster, double 0.02 % more, nothing at all 5 %.
const leastValue = 0.1

// setPodValues writes for each batch what one of its pods is worth. The candidates are whole where they are those of
// everything that is for sale.
func (op NodeOpener) setPodValues(cands []*capacity.Offering, whole bool, batches []*PodBatch) {
	r := op.A.W.Catalog.Sale // what is beaten is no cheaper
	if !whole {
		r = capacity.NewRanking(cands, len(op.A.W.Dims))
	}
	values := op.Prices.Values()
	for _, batch := range batches {
		batch.Value = capacity.NoPrice
		if batch.Left == 0 {
			continue
		}
		if batch.Value = r.MinShare(batch.Admit, batch.View.Class); batch.Value < capacity.NoPrice {
			batch.Value = max(batch.Value, rounding.LeastDivisor) // what is for free is worth something too
		}
		if batch.Value < capacity.NoPrice {
			batch.Least = batch.Value
			if op.A.Strategy.Guide != ByCostShare {
				batch.Value = max(values.ofBatch(batch), leastValue*batch.Value)
			}
		}
	}
}

// scoreCandidates are the candidates, each with a score that is no worse than what it has to offer, and exactly that
// where pods follow others: what a node would hold becomes more then while pods are placed.
func (op NodeOpener) scoreCandidates(offerings []*capacity.Offering, batches []*PodBatch) *candidateQueue {
	q := make(candidateQueue, 0, len(offerings))
	if slices.ContainsFunc(batches, func(batch *PodBatch) bool {
		return batch.Left > 0 && batch.View.HasHostAffinity()
	}) {
		for i, o := range offerings {
			if c := op.newCandidate(i, o, batches); len(c.order) > 0 {
				q = append(q, c)
			}
		}
		return &q
	}
	b := newGauge(batches, len(op.A.W.Dims))
	all := make([]Candidate, len(offerings))
	for i, o := range offerings {
		if most := b.maxWorth(o); most > 0 {
			all[i] = Candidate{index: i, Offering: o, score: op.A.OfferingCost(o) / most}
			q = append(q, &all[i])
		}
	}
	return &q
}

// newCandidate is the offering with its order and score.
func (op NodeOpener) newCandidate(i int, o *capacity.Offering, batches []*PodBatch) *Candidate {
	c := &Candidate{index: i, Offering: o}
	op.arrangeBatches(c, batches)
	if _, value := op.fillNode(c); value > 0 {
		c.score = op.A.OfferingCost(o) / value
	} else {
		c.order = nil
	}
	return c
}

// arrangeBatches finds the batches that the candidate may hold.
func (op NodeOpener) arrangeBatches(c *Candidate, batches []*PodBatch) {
	type dense struct {
		batch   *PodBatch
		density float64
	}
	some := make([]dense, 0, len(batches))
	for _, batch := range batches {
		if batch.Left == 0 || c.Offering.FirstAlternative(batch.Admit) < 0 {
			continue
		}
		if s := capacity.DominantShare(batch.View.Class.Need, c.Offering.Room); s <= 1 {
			some = append(some, dense{batch, batch.Value / max(s, rounding.Error)})
		}
	}
	slices.SortFunc(some, func(x, y dense) int {
		return cmp.Or(cmp.Compare(y.density, x.density), cmp.Compare(x.batch.ID, y.batch.ID))
	})
	c.order = make([]*PodBatch, len(some))
	for i, x := range some {
		c.order[i] = x.batch
	}
}

type candidateQueue []*Candidate

// Len is for container/heap.
func (q candidateQueue) Len() int { return len(q) }

// Less is for container/heap.
func (q candidateQueue) Less(i, j int) bool { return candidateLess(q[i], q[j]) }

// Swap is for container/heap.
func (q candidateQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is for container/heap.
func (q *candidateQueue) Push(x any) { *q = append(*q, x.(*Candidate)) }

// Pop is for container/heap.
func (q *candidateQueue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

func candidateLess(a, b *Candidate) bool {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.index, b.index)) < 0
}

// upperBound tells quickly what nodes would hold at most: fractions of pods, and of one resource alone as much as there
// is.
type upperBound struct {
	batches []*PodBatch
	order   [][]int // by resource: the batches, best use of it first
	fits    []int   // by batch: how many pods the offering holds, of it alone
}

func newGauge(batches []*PodBatch, dims int) *upperBound {
	b := &upperBound{}
	for _, batch := range batches {
		if batch.Left > 0 {
			b.batches = append(b.batches, batch)
		}
	}
	b.fits = make([]int, len(b.batches))
	for d := range dims {
		density := make([]float64, len(b.batches))
		order := make([]int, len(b.batches))
		some := false
		for i, batch := range b.batches {
			order[i], density[i] = i, math.Inf(1)
			if x := batch.View.Class.Need[d]; x > 0 {
				density[i], some = batch.Value/float64(x), true
			}
		}
		if some {
			slices.SortFunc(order, func(x, y int) int {
				return cmp.Or(cmp.Compare(density[y], density[x]),
					cmp.Compare(x, y))
			})
			b.order = append(b.order, order)
		} else {
			b.order = append(b.order, nil)
		}
	}
	return b
}

// maxWorth is more than what a new node of the offering would hold can be worth, 0 where it holds nothing.
func (b *upperBound) maxWorth(o *capacity.Offering) float64 {
	sum := 0.0
	for i, batch := range b.batches {
		b.fits[i] = 0
		if o.FirstAlternative(batch.Admit) >= 0 {
			b.fits[i] = min(batch.Left, capacity.FitCount(batch.View.Class.Need, o.Room))
			sum += float64(b.fits[i]) * batch.Value
		}
	}
	for d, order := range b.order {
		if order == nil || sum == 0 {
			continue
		}
		room, value := float64(o.Room[d]), 0.0
		for _, i := range order {
			n := float64(b.fits[i])
			if x := float64(b.batches[i].View.Class.Need[d]); x > 0 {
				n = min(n, room/x)
				room -= n * x
			}
			value += n * b.batches[i].Value
			if room <= 0 {
				break
			}
		}
		sum = min(sum, value)
	}
	return sum * (1 + rounding.Error)
}
