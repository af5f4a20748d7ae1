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
	for _, l := range batches {
		if l.Left > 0 && l.whole && l.View == l.View.Class.LastRelaxation() {
			whole = append(whole, l)
		}
	}
	for _, pools := range op.A.W.Catalog.ByWeight() {
		op.openIn(pools, batches)
	}
	// else the next pass may have a node for all
	if !op.A.Used.ClaimsUsedUp() && slices.ContainsFunc(whole, func(l *PodBatch) bool { return l.Left > 0 }) {
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
	for _, l := range batches {
		if b := op.roomiestBin(l); b != nil {
			op.A.fillBins([]*capacity.Bin{b}, []*PodBatch{l})
		}
	}
	op.A.fillBins(op.A.Bins, batches)
}

// roomiestBin is the node, there or new, that takes the most pods of the batch; nil when none takes any.
func (op NodeOpener) roomiestBin(l *PodBatch) *capacity.Bin {
	var best *capacity.Bin
	most := 0
	for _, b := range op.A.Bins {
		n := min(l.Left, capacity.FitCount(l.View.Class.Need, b.Room),
			op.A.W.Topology.MaxPodsByHostRules(l.View, op.A.siteOf(b)))
		if n > most && op.A.AlternativeFor(l, b) >= 0 {
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
		for _, l := range slices.Concat(at[:i]...) {
			if op.A.W.Catalog.TierSells(i, l.Admit, l.View.Class) {
				guests = append(guests, l)
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
	for _, l := range batches {
		if l.Left == 0 {
			continue
		}
		if i := op.A.W.Catalog.HeaviestTier(l.Admit, l.View.Class); i >= 0 {
			if len(at[i]) == 0 {
				some++
			}
			at[i] = append(at[i], l)
		}
	}
	return at, some
}

// limitsLeaveRoom reports whether the limits of the pools leave room for twice what the batches ask for, in each pool.
func (op NodeOpener) limitsLeaveRoom(pools []*capacity.Pool, batches []*PodBatch) bool {
	var all resources.List
	for _, l := range batches {
		all = all.Add(l.View.Class.Pod.Need.Times(2 * int64(l.Left)))
	}
	return !slices.ContainsFunc(pools, func(p *capacity.Pool) bool {
		return slices.Contains(p.Limited, string(api.LimitNodes)) || p.LimitsPrice() || op.A.Used.ExceedsLimits(p, all)
	})
}

// openIn makes new nodes in pools of one weight.
func (op NodeOpener) openIn(pools []*capacity.Pool, batches []*PodBatch) {
	if !slices.ContainsFunc(batches, func(l *PodBatch) bool { return l.Left > 0 }) {
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
