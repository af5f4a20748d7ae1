package binpack

import (
	"math"
	"slices"
	"strings"

	"joiner.sh/pkg/model/instancetypes"
)

// dear is what a pod is worth, in USD per hour, that only reserved capacity can take.
const dear = 1e6

// openReserved makes nodes in capacity that is reserved, and so paid for, before any other of the pools: each time
// those that would save most.
func (op nodeOpener) openReserved(pools []*pool, batches []*podBatch) {
	var offers []*poolOffering
	for _, p := range pools {
		if p.mayBeOneType {
			offers = append(offers, p.reserved...)
		}
	}
	if len(offers) == 0 {
		return
	}
	for _, l := range batches {
		if l.value = op.a.w.catalog.minPriceShare(l.view, l.pins); l.value >= noPrice {
			l.value = dear
		}
	}
	for !op.a.used.claimsUsedUp() {
		o, takes := op.mostValuable(offers, batches)
		if o == nil {
			return
		}
		if n, _ := op.a.openCopies(o, takes, math.MaxInt32); n == 0 {
			return
		}
	}
}

// mostValuable is the offer of which a node would hold what is worth most, and what that is; nil when none is left.
func (op nodeOpener) mostValuable(offers []*poolOffering, batches []*podBatch) (*poolOffering, []batchTake) {
	var best *poolOffering
	var takes []batchTake
	most := 0.0
	for i, o := range offers {
		if op.a.used.spotAllowance(o, 1) == 0 || op.a.used.exceedsLimits(o.model.pool, o.model.typ.Capacity) {
			continue
		}
		if t, value := op.fillNode(op.newCandidate(i, o, batches)); value > most {
			best, takes, most = o, t, value
		}
	}
	return best, takes
}

// openPaid makes nodes of types that commitments of the account cover, and so cost nothing more, before any other of
// the pools: each time those that save most for what they would cost on demand.
func (op nodeOpener) openPaid(pools []*pool, batches []*podBatch) {
	if !slices.ContainsFunc(pools, func(p *pool) bool { return len(p.paid) > 0 && !p.minValues() }) {
		return
	}
	for _, l := range batches {
		if l.value = op.a.w.catalog.minPriceShare(l.view, l.pins); l.value >= noPrice {
			l.value = 0 // only what is to be had without a commitment as well
		}
	}
	offers := op.paidOffers(pools, batches)
	for !op.a.used.claimsUsedUp() {
		var best *candidate
		var takes []batchTake
		most, draw := 0.0, instancetypes.CommitmentDraw{}
		for i, o := range offers {
			p := o.model.pool
			d, n := o.coveringCommitment(op.a.used.slots)
			if n == 0 || op.a.used.exceedsLimits(p, o.model.typ.Capacity) {
				continue
			}
			c := op.newCandidate(i, o, batches)
			t, value := op.fillNode(c)
			if each := value / o.InstanceUSD(); value > o.Price && each > most { // an overlay may have made it dear
				best, takes, most, draw = c, t, each, d
			}
		}
		if best == nil {
			return
		}
		o := *best.offer
		o.Paid = []instancetypes.CommitmentDraw{draw}
		if n, _ := op.a.openCopies(&o, takes, math.MaxInt32); n == 0 {
			return
		}
	}
}

// paidOffers are the offers that commitments cover, without those that another of the same commitments beats.
func (op nodeOpener) paidOffers(pools []*pool, batches []*podBatch) []*poolOffering {
	asks := waitingAdmissions(batches)
	var out []*poolOffering
	for _, p := range pools {
		if p.minValues() { // a commitment is looked at for one type at a time
			continue
		}
		groups := map[string][]*poolOffering{}
		var order []string
		for _, o := range p.paid {
			id := commitmentIDs(o)
			if groups[id] == nil {
				order = append(order, id)
			}
			groups[id] = append(groups[id], o)
		}
		for _, id := range order {
			for _, e := range filterUndominated(byPrice(groups[id]), p.concernedAdmissions(asks)) {
				out = append(out, e.offer)
			}
		}
	}
	return out
}

// commitmentIDs are the ids of those that cover the offer.
func commitmentIDs(o *poolOffering) string {
	var ids []string
	for _, d := range o.Paid {
		ids = append(ids, d.Commitment)
	}
	return strings.Join(ids, " ")
}
