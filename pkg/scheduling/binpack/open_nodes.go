package binpack

import (
	"container/heap"
	"fmt"
	"math"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/capacity"
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
func (op nodeOpener) openTier(pools []*capacity.Pool, batches []*podBatch) bool {
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
		if slices.Contains(takes[0].batch.refused, c.offer.InstanceType.Pool) {
			heap.Push(q, c) // others do without what MinValues refused
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
// pool's limits or its MinValues stopped it.
func (a *solution) openCopies(o *capacity.Offering, takes []batchTake, most int) (opened int, full bool) {
	p := o.InstanceType.Pool
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
		b.Name = fmt.Sprintf("new-%05d", a.used.opened)
		b.Low = low
		for _, t := range takes {
			a.placePods(t.batch, b, t.alt, t.n)
		}
		a.bins = append(a.bins, b)
		a.used.opened++
		opened++
		if id, amount := o.Slot(); amount > 0 {
			a.used.slots[id] -= amount
		}
		if a.used.spotCeiling > 0 {
			a.used.spot.Add(o.Offer, o.InstanceType.Type.Capacity.CPU, 1)
		}
		a.used.pools[p.ID].List = a.used.pools[p.ID].List.Add(charge)
		a.used.pools[p.ID].Nodes++
	}
	return opened, false
}

// newBin is an empty new node that takes the capacity of its pool's limits.
func (a *solution) newBin(o *capacity.Offering, charge resources.List) *capacity.Bin {
	counters := len(a.w.topology.Counters)
	return &capacity.Bin{
		Offer: o, Takes: charge, Taints: o.InstanceType.Pool.Taints, Open: o.InstanceType.Open,
		Room:  slices.Clone(o.Room),
		Disks: o.AttachableOnNew(a.w.classes),
		Ports: slices.Clone(o.Ports), Count: make([]int, counters), Anti: make([]int, counters),
	}
}
