package packing

import (
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/cover"
)

// mostFleetWork caps the numbers that are gone through for the nodes of one fleet, some ten nanoseconds each: about
// three times the most of a whole plan. No workload of infra/lab/ablation comes near it.
const mostFleetWork = 1_000_000_000

// openFleet makes new nodes in the pools for all batches together. What rules keep from the nodes that it was meant for
// is left over.
func (op NodeOpener) openFleet(pools []*capacity.OfferingPool, batches []*PodBatch) {
	free := slices.DeleteFunc(slices.Clone(batches), func(batch *PodBatch) bool {
		return batch.Left == 0 || batch.whole ||
			batch.View.HasHostAffinity()
	})
	if len(free) == 0 {
		return
	}
	g := op.NewPriceGuide()
	g.PrepareGroups(op.CandidateOfferings(pools, free), free)
	if !g.CountRemaining() {
		return
	}
	classes, groupCaps := g.prices.PriceClasses()
	p := cover.Problem{Caps: groupCaps}
	for _, it := range g.Items {
		c := classes[it.class]
		p.Classes = append(p.Classes, cover.Class{Need: c.Need, Group: c.Group, Count: float64(it.all),
			Most: float64(max(1, it.left))})
	}
	for _, c := range g.cands {
		p.Offerings = append(p.Offerings, cover.Offering{
			Price: op.A.OfferingCost(c.Offering), Room: c.room, Holds: c.items})
	}
	for _, n := range op.A.Strategy.Prices.CoverByWholeNodes(p, mostFleetWork) {
		d := newDraft(op.A, g.cands[n.Offering].Offering)
		for i, k := range n.Class {
			left := n.Amount[i]
			for _, batch := range g.Items[k].Batches {
				left -= d.takePods(batch, left)
			}
		}
		if len(d.takes) == 0 {
			continue
		}
		_, full := op.A.openCopies(d.offering, d.takes, 1)
		if slices.Contains(d.takes[0].Batch.refused, d.offering.InstanceType.Pool) {
			continue // others do without what MinValues refused
		}
		if full || op.A.Used.ClaimsUsedUp() {
			return
		}
	}
}
