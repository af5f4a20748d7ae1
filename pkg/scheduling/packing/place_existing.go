package packing

import (
	"cmp"
	"math"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/rounding"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
)

// settleSpread puts pods that spread over domains into the room there is, as far as their skew allows, before they are
// divided evenly: an empty domain where a node must be made is dearer than a domain with room that may take one more.
// Pods that gather are left out, for the first of them decides about all. Pods without a spread take part, lest room
// that they need more is gone.
func (pk *packing) settleSpread(now []*podclass.Class) {
	if pk.roomOnly || !slices.ContainsFunc(pk.a.Bins, func(b *capacity.Bin) bool { return b.Offering == nil }) {
		return
	}
	var some []*podclass.Class
	spreads := false
	for _, class := range now {
		pod := pk.currentRelaxation(class)
		if !slices.ContainsFunc(slices.Concat(pod.HostRules, pod.DomainRules),
			func(r podclass.TopologyRule) bool { return r.Kind == podclass.Follow }) {
			some = append(some, class)
			spreads = spreads || slices.ContainsFunc(pod.DomainRules,
				func(r podclass.TopologyRule) bool { return r.Kind == podclass.Spread })
		}
	}
	if !spreads {
		return
	}
	pk.roomOnly = true
	pk.useHosts(pk.divideIntoBatches(some))
	pk.roomOnly = false
}

// useHosts fills the room that exists, and that of nodes opened before in this pass.
func (pk *packing) useHosts(batches []*PodBatch) {
	if pk.a.Strategy.HostsByPrices {
		pk.fillHostsByPrices(batches)
	}
	pk.a.fillBins(pk.a.Bins, pk.sortByScarcity(batches))
}

// sortByScarcity sorts batches so that those come first that can be nowhere else, then those that would cost most on
// new nodes for what they take of the room there is. Small differences do not count: then the order of the batches, in
// which large pods are first, packs better.
func (pk *packing) sortByScarcity(batches []*PodBatch) []*PodBatch {
	if pk.a.Strategy.Guide == ByCostShare {
		return batches // plain first fit, should that be cheaper
	}
	total := make([]int64, len(pk.a.W.Dims))
	for _, b := range pk.a.Bins {
		if b.Offering == nil {
			for i, x := range b.Room {
				total[i] += x
			}
		}
	}
	class := make([]float64, len(batches)) // by id
	for _, batch := range batches {
		price := pk.a.W.Catalog.MinPriceShare(batch.View, batch.Pins)
		if price >= capacity.NoPrice {
			class[batch.ID] = math.Inf(1)
			continue
		}
		if s := capacity.DominantShare(batch.View.Class.Need, total); s > 0 {
			class[batch.ID] = math.Floor(math.Log(max(price, rounding.Error)/s) / math.Log(notable))
		}
	}
	return slices.SortedStableFunc(slices.Values(batches),
		func(x, y *PodBatch) int { return cmp.Compare(class[y.ID], class[x.ID]) })
}

// notable is the factor between prices that changes who gets room first. 2 costs half-empty clusters 0.6 % more.
const notable = 1.5

// fillBins fills the room of the bins in their order.
func (s *Solution) fillBins(bins []*capacity.Bin, batches []*PodBatch) {
	for again := true; again; {
		again = false
		for _, b := range bins {
			for _, batch := range batches {
				if batch.Left > 0 && s.joinBin(batch, b) {
					again = again || len(batch.View.HostRules) > 0 // others may want to be near
				}
			}
		}
	}
}

// joinBin puts as many pods of the batch in the bin as it takes; false when it takes none.
func (s *Solution) joinBin(batch *PodBatch, b *capacity.Bin) bool {
	n := min(batch.Left, capacity.FitCount(batch.View.Class.Need, b.Room))
	if n == 0 {
		return false
	}
	s.W.Stages.Tell(cluster.StagePlace, batch.View.Class, "")
	if b.Offering == nil && b.AlternativeFor(batch.Admit) < 0 {
		return false
	}
	if n = min(n, s.W.Topology.MaxPodsByHostRules(batch.View, s.siteOf(b))); n == 0 || batch.whole && n < batch.Left {
		return false
	}
	alt := s.AlternativeFor(batch, b)
	if alt < 0 {
		return false
	}
	if b.Offering != nil {
		if n = s.mostJoining(batch, b, alt, n); n == 0 || batch.whole && n < batch.Left {
			return false
		}
	}
	s.placePods(batch, b, alt, n)
	return true
}

// AlternativeFor returns the alternative under which the batch may join the bin, -1 for none.
func (s *Solution) AlternativeFor(batch *PodBatch, b *capacity.Bin) int {
	if b.Offering == nil {
		return b.AlternativeFor(batch.Admit)
	}
	for _, p := range batch.Pins {
		if d := b.DomainOf(p.Key); d != p.Domain {
			return -1
		}
	}
	return b.Offering.FirstAlternativeBeside(batch.Admit, b.Open)
}
