package packing

import (
	"slices"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/capacity"
)

// openAll makes new nodes for the batches, of the heaviest pools that take them.
func (op NodeOpener) openAll(batches []*PodBatch) {
	op.openHomes(batches)
	var whole []*PodBatch
	for _, batch := range batches {
		if batch.Left > 0 && batch.whole && batch.View == batch.View.Class.LastRelaxation() {
			whole = append(whole, batch)
		}
	}
	for _, pools := range op.A.W.Catalog.ByWeight() {
		op.openIn(pools, batches)
	}
	// else the next pass may have a node for all
	if !op.A.Used.ClaimsUsedUp() && slices.ContainsFunc(whole, func(batch *PodBatch) bool { return batch.Left > 0 }) {
		op.placePartly(whole)
	}
}

// placePartly places what can be of batches that found no node for all their pods together, where nothing is for sale:
// in reservations, and on nodes that there are.
func (op NodeOpener) placePartly(batches []*PodBatch) {
	loosenBatches(batches)
	for _, pools := range op.A.W.Catalog.ByWeight() {
		op.openReserved(pools, batches)
	}
	for _, batch := range batches {
		if b := op.roomiestBin(batch); b != nil {
			op.A.fillBins([]*capacity.Bin{b}, []*PodBatch{batch})
		}
	}
	op.A.fillBins(op.A.Bins, batches)
}

// roomiestBin is the node, there or new, that takes the most pods of the batch; nil when none takes any.
func (op NodeOpener) roomiestBin(batch *PodBatch) *capacity.Bin {
	var best *capacity.Bin
	most := 0
	for _, b := range op.A.Bins {
		n := min(batch.Left, capacity.FitCount(batch.View.Class.Need, b.Room),
			op.A.W.Topology.MaxPodsByHostRules(batch.View, op.A.siteOf(b)))
		if n > most && op.A.AlternativeFor(batch, b) >= 0 {
			best, most = b, n
		}
	}
	return best
}

// openHomes makes the nodes first that light pools have to bring, because no heavier one sells any for those pods, and
// gives what room they leave to pods of heavier pools. A node that is opened anyway comes before one more, whatever the
// weight. Where heavier pools may come to their limits it waits: what they leave over is packed better together with
// those pods.
func (op NodeOpener) openHomes(batches []*PodBatch) {
	all := op.A.W.Catalog.ByWeight()
	if len(all) < 2 {
		return
	}
	at, some := op.byHeaviestTier(batches)
	if some < 2 {
		return
	}
	lightest := len(at) - 1
	for len(at[lightest]) == 0 {
		lightest--
	}
	for i := range lightest {
		if !op.limitsLeaveRoom(all[i], at[i]) {
			return
		}
	}
	for i := lightest; i > 0; i-- {
		var guests []*PodBatch
		for _, batch := range slices.Concat(at[:i]...) {
			if op.A.W.Catalog.TierSells(i, batch.Admit, batch.View.Class) {
				guests = append(guests, batch)
			}
		}
		if len(guests) == 0 {
			continue
		}
		before := len(op.A.Bins)
		op.openIn(all[i], at[i])
		op.A.fillBins(op.A.Bins[before:], guests)
	}
}

// byHeaviestTier are the batches that wait, by the heaviest pools that sell a node for them, and how many such pools
// there are.
func (op NodeOpener) byHeaviestTier(batches []*PodBatch) (at [][]*PodBatch, some int) {
	at = make([][]*PodBatch, len(op.A.W.Catalog.ByWeight()))
	for _, batch := range batches {
		if batch.Left == 0 {
			continue
		}
		if i := op.A.W.Catalog.HeaviestTier(batch.Admit, batch.View.Class); i >= 0 {
			if len(at[i]) == 0 {
				some++
			}
			at[i] = append(at[i], batch)
		}
	}
	return at, some
}

// limitsLeaveRoom reports whether the limits of the pools leave room for twice what the batches ask for, in each pool.
func (op NodeOpener) limitsLeaveRoom(pools []*capacity.OfferingPool, batches []*PodBatch) bool {
	var all resources.List
	for _, batch := range batches {
		all = all.Add(batch.View.Class.Pod.Need.Times(2 * int64(batch.Left)))
	}
	return !slices.ContainsFunc(pools, func(p *capacity.OfferingPool) bool {
		return slices.Contains(p.Limited, string(api.LimitNodes)) || p.LimitsPrice() || op.A.Used.ExceedsLimits(p, all)
	})
}

// openIn makes new nodes in pools of one weight.
func (op NodeOpener) openIn(pools []*capacity.OfferingPool, batches []*PodBatch) {
	if !slices.ContainsFunc(batches, func(batch *PodBatch) bool { return batch.Left > 0 }) {
		return
	}
	op.openReserved(pools, batches)
	op.openPaid(pools, batches)
	if op.A.Strategy.Guide == ByLinearProgram {
		op.openFleet(pools, batches)
	}
	for op.A.Strategy.Guide != ByCostShare && op.openByPrices(pools, batches) {
	}
	for op.openTier(pools, batches) {
	}
}

// openNodes makes new nodes for the batches, in the heaviest pools that take them.
func (op NodeOpener) openNodes(batches []*PodBatch) {
	if slices.ContainsFunc(batches, func(batch *PodBatch) bool { return batch.View.Class.Stays }) {
		batches = slices.DeleteFunc(slices.Clone(batches), func(batch *PodBatch) bool { return batch.View.Class.Stays })
	}
	op.Prices = op.A.Strategy.Prices.WorthOf(op.A)
	op.openAll(batches)
	if op.A.Used.SpotCeiling > 0 && slices.ContainsFunc(batches, func(batch *PodBatch) bool { return batch.Left > 0 }) {
		before := op.A.Used.SpotCeiling
		op.A.Used.SpotCeiling = 0 // it never leaves a pod without a home
		op.openAll(batches)
		op.A.Used.SpotCeiling = before
	}
}
