package packing

import (
	"container/heap"
	"fmt"
	"math"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/capacity"
)

// openTier makes new nodes in pools of one weight. Each time it takes the offering with the lowest price for what it
// would hold, where a pod is worth what it costs at least anywhere. It returns true when another try may place more.
func (op NodeOpener) openTier(pools []*capacity.OfferingPool, batches []*PodBatch) bool {
	q := op.scoreCandidates(op.CandidateOfferings(pools, batches), batches)
	heap.Init(q)
	opened, limited := 0, false
	for q.Len() > 0 {
		c := heap.Pop(q).(*Candidate)
		if c.order == nil {
			op.arrangeBatches(c, batches)
		}
		takes, value := op.fillNode(c)
		if value <= 0 {
			continue
		}
		// Scores only get worse while pods are placed, so an old score that is not the best needs no second look.
		if c.score = op.A.OfferingCost(c.Offering) / value; q.Len() > 0 && candidateLess((*q)[0], c) {
			heap.Push(q, c)
			continue
		}
		n, full := op.A.openCopies(c.Offering, takes, math.MaxInt)
		opened += n
		limited = limited || full
		if slices.Contains(takes[0].Batch.refused, c.Offering.InstanceType.Pool) {
			heap.Push(q, c) // others do without what MinValues refused
			continue
		}
		if op.A.Used.ClaimsUsedUp() {
			return false
		}
		if !full {
			heap.Push(q, c)
		}
	}
	return limited && opened > 0 || loosenBatches(batches)
}

// loosenBatches lets batches that found no node for all their pods together use one that holds some of them.
func loosenBatches(batches []*PodBatch) bool {
	found := false
	for _, batch := range batches {
		if batch.whole && batch.Left > 0 {
			batch.whole, found = false, true
		}
	}
	return found
}

// openCopies makes nodes like this one, up to most, while there are pods for more. It returns how many, and whether the
// pool's limits or its MinValues stopped it.
func (s *Solution) openCopies(o *capacity.Offering, takes []BatchTake, most int) (opened int, full bool) {
	p := o.InstanceType.Pool
	times := most
	for _, t := range takes {
		s.W.Stages.Tell(cluster.StageOpen, t.Batch.View.Class, p.Name)
		times = min(times, t.Batch.Left/t.N)
		if t.Batch.View.HasHostAffinity() {
			times = 1
		}
	}
	if times = s.Used.spotAllowance(o, times); times == 0 {
		return 0, true
	}
	takes, charge, low := s.shrinkForMinValues(o, takes)
	if takes == nil {
		return 0, true
	}
	for range times {
		if s.Used.ExceedsLimits(p, charge) {
			return opened, true
		}
		if s.Used.ClaimsUsedUp() {
			return opened, false
		}
		b := s.NewBin(o, charge)
		b.Name = fmt.Sprintf("new-%05d", s.Used.Opened)
		b.Low = low
		for _, t := range takes {
			s.placePods(t.Batch, b, t.Alt, t.N)
		}
		s.Bins = append(s.Bins, b)
		s.Used.Opened++
		opened++
		if id, amount := o.Slot(); amount > 0 {
			s.Used.slots[id] -= amount
		}
		if s.Used.SpotCeiling > 0 {
			s.Used.spot.Add(o.OfferingKey, o.InstanceType.Type.Capacity.CPU, 1)
		}
		s.Used.Pools[p.ID].List = s.Used.Pools[p.ID].List.Add(charge)
		s.Used.Pools[p.ID].Nodes++
	}
	return opened, false
}

// NewBin is an empty new node that takes the capacity of its pool's limits.
func (s *Solution) NewBin(o *capacity.Offering, charge resources.List) *capacity.Bin {
	counters := len(s.W.Topology.Counters)
	return &capacity.Bin{
		Offering: o, Takes: charge, Taints: o.InstanceType.Pool.Taints, Open: o.InstanceType.Open,
		Room:  slices.Clone(o.Room),
		Disks: o.AttachableOnNew(s.W.Classes),
		Ports: slices.Clip(o.Ports), Count: make([]int, counters), Anti: make([]int, counters),
	}
}
