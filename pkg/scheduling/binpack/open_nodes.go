package binpack

import (
	"container/heap"
	"fmt"
	"math"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/podclass"
)

// nodeOpener makes new nodes for pods that no node has room for.
type nodeOpener struct{ a *solution }

// openNodes makes new nodes for the batches, in the heaviest pools that take them.
func (op nodeOpener) openNodes(batches []*podBatch) {
	if slices.ContainsFunc(batches, func(l *podBatch) bool { return l.view.Class.Stays }) {
		batches = slices.DeleteFunc(slices.Clone(batches), func(l *podBatch) bool { return l.view.Class.Stays })
	}
	op.a.strategy.prices.worthOf(op.a)
	op.openAll(batches)
	if op.a.used.spotCeiling > 0 && slices.ContainsFunc(batches, func(l *podBatch) bool { return l.left > 0 }) {
		before := op.a.used.spotCeiling
		op.a.used.spotCeiling = 0 // it never leaves a pod without a home
		op.openAll(batches)
		op.a.used.spotCeiling = before
	}
}

// openTier makes new nodes in pools of one weight. Each time it takes the offer with the lowest price for what it would
// hold, where a pod is worth what it costs at least anywhere. It returns true when another try may place more.
func (op nodeOpener) openTier(pools []*pool, batches []*podBatch) bool {
	q := op.scoreCandidates(op.candidateOffers(pools, batches), batches)
	heap.Init(q)
	opened, limited := 0, false
	for q.Len() > 0 {
		c := heap.Pop(q).(*candidate)
		if c.order == nil {
			op.arrangeBatches(c, batches)
		}
		takes, value := op.fillNode(c)
		if value <= 0 {
			continue
		}
		// Scores only get worse while pods are placed, so an old score that is not the best needs no second look.
		if c.score = op.a.offerCost(c.offer) / value; q.Len() > 0 && candidateLess((*q)[0], c) {
			heap.Push(q, c)
			continue
		}
		n, full := op.a.openCopies(c.offer, takes, math.MaxInt)
		opened += n
		limited = limited || full
		if slices.Contains(takes[0].batch.refused, c.offer.model.pool) {
			heap.Push(q, c) // others do without what minValues refused
			continue
		}
		if op.a.used.claimsUsedUp() {
			return false
		}
		if !full {
			heap.Push(q, c)
		}
	}
	return limited && opened > 0 || loosenBatches(batches)
}

// loosenBatches lets batches that found no node for all their pods together use one that holds some of them.
func loosenBatches(batches []*podBatch) bool {
	found := false
	for _, l := range batches {
		if l.whole && l.left > 0 {
			l.whole, found = false, true
		}
	}
	return found
}

// openCopies makes nodes like this one, up to most, while there are pods for more. It returns how many, and whether the
// pool's limits or its minValues stopped it.
func (a *solution) openCopies(o *poolOffering, takes []batchTake, most int) (opened int, full bool) {
	p := o.model.pool
	times := most
	for _, t := range takes {
		a.w.stages.Tell(cluster.StageOpen, t.batch.view.Class, p.Name)
		times = min(times, t.batch.left/t.n)
		if slices.ContainsFunc(t.batch.view.HostRules,
			func(r podclass.TopologyRule) bool { return r.Kind == podclass.Follow }) {
			times = 1
		}
	}
	if times = a.used.spotAllowance(o, times); times == 0 {
		return 0, true
	}
	takes, charge, low := a.shrinkForMinValues(o, takes)
	if takes == nil {
		return 0, true
	}
	for range times {
		if a.used.exceedsLimits(p, charge) {
			return opened, true
		}
		if a.used.claimsUsedUp() {
			return opened, false
		}
		b := a.newBin(o, charge)
		b.name = fmt.Sprintf("new-%05d", a.used.opened)
		b.low = low
		for _, t := range takes {
			a.placePods(t.batch, b, t.alt, t.n)
		}
		a.bins = append(a.bins, b)
		a.used.opened++
		opened++
		if id, amount := o.slot(); amount > 0 {
			a.used.slots[id] -= amount
		}
		if a.used.spotCeiling > 0 {
			a.used.spot.add(o.Offer, o.model.typ.Capacity.CPU, 1)
		}
		a.used.pools[p.id].list = a.used.pools[p.id].list.Add(charge)
		a.used.pools[p.id].nodes++
	}
	return opened, false
}

// newBin is an empty new node that takes the capacity of its pool's limits.
func (a *solution) newBin(o *poolOffering, charge resources.List) *bin {
	counters := len(a.w.topology.counters)
	return &bin{
		offer: o, takes: charge, taints: o.model.pool.Taints, open: o.model.open, room: slices.Clone(o.room),
		disks: o.attachableOnNew(a.w.classes),
		ports: slices.Clone(o.ports), count: make([]int, counters), anti: make([]int, counters),
	}
}
