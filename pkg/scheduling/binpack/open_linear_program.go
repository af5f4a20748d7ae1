package binpack

import (
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/lowerbound"
)

// mostFleetWork is how much work, of about a nanosecond each, may go into the nodes of one fleet: three times what a
// whole plan takes at most.
const mostFleetWork = 12_000_000_000

// openFleet makes new nodes in the pools for all batches together. What rules keep from the nodes that it was meant for
// is left over.
func (op nodeOpener) openFleet(pools []*capacity.Pool, batches []*podBatch) {
	free := slices.DeleteFunc(slices.Clone(batches), func(l *podBatch) bool {
		return l.left == 0 || l.whole ||
			l.view.HasHostAffinity()
	})
	if len(free) == 0 {
		return
	}
	g := newPriceGuide(op.a, podPricesFor(op.a))
	g.prepareGroups(op.candidateOffers(pools, free), free)
	if !g.countRemaining() {
		return
	}
	classes, groupCaps := g.prices.priceClasses()
	p := lowerbound.CoverProblem{Caps: groupCaps}
	for _, it := range g.items {
		c := classes[it.class]
		p.Classes = append(p.Classes, lowerbound.PriceClass{Need: c.Need, Group: c.Group, Count: float64(it.all),
			Most: float64(max(1, it.left))})
	}
	for _, c := range g.cands {
		p.Offers = append(p.Offers, lowerbound.NodeOffer{Price: op.a.offerCost(c.offer), Room: c.room, Holds: c.items})
	}
	for _, n := range lowerbound.CoverByWholeNodes(p, mostFleetWork) {
		d := newDraft(op.a, g.cands[n.Offer].offer)
		for i, k := range n.Class {
			left := n.Amount[i]
			for _, l := range g.items[k].batches {
				left -= d.takePods(l, left)
			}
		}
		if len(d.takes) == 0 {
			continue
		}
		if _, full := op.a.openCopies(d.offer, d.takes, 1); full || op.a.used.claimsUsedUp() {
			return
		}
	}
}
