package binpack

import (
	"slices"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/capacity"
)

// openAll makes new nodes for the batches, of the heaviest pools that take them.
func (op nodeOpener) openAll(batches []*podBatch) {
	op.openHomes(batches)
	var whole []*podBatch
	for _, l := range batches {
		if l.left > 0 && l.whole && l.view == l.view.Class.LastRelaxation() {
			whole = append(whole, l)
		}
	}
	for _, pools := range op.a.w.catalog.ByWeight().Pools {
		op.openIn(pools, batches)
	}
	// else the next pass may have a node for all
	if !op.a.used.claimsUsedUp() && slices.ContainsFunc(whole, func(l *podBatch) bool { return l.left > 0 }) {
		op.placePartly(whole)
	}
}

// placePartly places what can be of batches that found no node for all their pods together, where nothing is for sale:
// in reservations, and on nodes that there are.
func (op nodeOpener) placePartly(batches []*podBatch) {
	loosenBatches(batches)
	for _, pools := range op.a.w.catalog.ByWeight().Pools {
		op.openReserved(pools, batches)
	}
	for _, l := range batches {
		if b := op.roomiestBin(l); b != nil {
			op.a.fillBins([]*capacity.Bin{b}, []*podBatch{l})
		}
	}
	op.a.fillBins(op.a.bins, batches)
}

// roomiestBin is the node, there or new, that takes the most pods of the batch; nil when none takes any.
func (op nodeOpener) roomiestBin(l *podBatch) *capacity.Bin {
	var best *capacity.Bin
	most := 0
	for _, b := range op.a.bins {
		n := min(l.left, capacity.FitCount(l.view.Class.Need, b.Room),
			op.a.w.topology.MaxPodsByHostRules(l.view, op.a.siteOf(b)))
		if n > most && op.a.alternativeFor(l, b) >= 0 {
			best, most = b, n
		}
	}
	return best
}

// openHomes makes the nodes first that light pools have to bring, because no heavier one sells any for those pods, and
// gives what room they leave to pods of heavier pools. A node that is opened anyway comes before one more, whatever the
// weight. Where heavier pools may come to their limits it waits: what they leave over is packed better together with
// those pods.
func (op nodeOpener) openHomes(batches []*podBatch) {
	all := op.a.w.catalog.ByWeight()
	if len(all.Pools) < 2 {
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
		if !op.limitsLeaveRoom(all.Pools[i], at[i]) {
			return
		}
	}
	for i := lightest; i > 0; i-- {
		var guests []*podBatch
		for _, l := range slices.Concat(at[:i]...) {
			if all.TierSells(i, l.admit, l.view.Class) {
				guests = append(guests, l)
			}
		}
		if len(guests) == 0 {
			continue
		}
		before := len(op.a.bins)
		op.openIn(all.Pools[i], at[i])
		op.a.fillBins(op.a.bins[before:], guests)
	}
}

// byHeaviestTier are the batches that wait, by the heaviest pools that sell a node for them, and how many such pools
// there are.
func (op nodeOpener) byHeaviestTier(batches []*podBatch) (at [][]*podBatch, some int) {
	at = make([][]*podBatch, len(op.a.w.catalog.ByWeight().Pools))
	for _, l := range batches {
		if l.left == 0 {
			continue
		}
		if i := op.a.w.catalog.HeaviestTier(l.admit, l.view.Class); i >= 0 {
			if len(at[i]) == 0 {
				some++
			}
			at[i] = append(at[i], l)
		}
	}
	return at, some
}

// limitsLeaveRoom reports whether the limits of the pools leave room for twice what the batches ask for, in each pool.
func (op nodeOpener) limitsLeaveRoom(pools []*capacity.Pool, batches []*podBatch) bool {
	var all resources.List
	for _, l := range batches {
		all = all.Add(l.view.Class.Pod.Need.Times(2 * int64(l.left)))
	}
	return !slices.ContainsFunc(pools, func(p *capacity.Pool) bool {
		return slices.Contains(p.Limited, string(api.LimitNodes)) || p.LimitsPrice() || op.a.used.exceedsLimits(p, all)
	})
}

// openIn makes new nodes in pools of one weight.
func (op nodeOpener) openIn(pools []*capacity.Pool, batches []*podBatch) {
	if !slices.ContainsFunc(batches, func(l *podBatch) bool { return l.left > 0 }) {
		return
	}
	op.openReserved(pools, batches)
	op.openPaid(pools, batches)
	if op.a.strategy.guide == byLinearProgram {
		op.openFleet(pools, batches)
	}
	for op.a.strategy.guide != byCostShare && op.openByPrices(pools, batches) {
	}
	for op.openTier(pools, batches) {
	}
}
