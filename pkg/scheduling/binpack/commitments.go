package binpack

import (
	"maps"
	"math"
	"slices"
	"strings"

	"joiner/pkg/model/instancetypes"
	"joiner/pkg/scheduling/lowerbound"
)

// openPaid makes nodes of types that commitments of the account cover, and so cost nothing more, before any other of
// the pools: each time those that save most for what they would cost on demand.
func (op *nodeOpener) openPaid(pools []*pool, lots []*podBatch) {
	if !slices.ContainsFunc(pools, func(p *pool) bool { return len(p.paid) > 0 && !p.minValues() }) {
		return
	}
	for _, l := range lots {
		if l.value = op.a.w.catalog.minPriceShare(l.view, l.pins); l.value >= noPrice {
			l.value = 0 // only what is to be had without a commitment as well
		}
	}
	offers := op.paidOffers(pools, lots)
	for !op.a.used.atMost() {
		var best *candidate
		var takes []batchTake
		most, draw := 0.0, instancetypes.CommitmentDraw{}
		for i, o := range offers {
			p := o.model.pool
			d, n := o.coveringCommitment(op.a.used.slots)
			if n == 0 || op.a.used.exceedsLimits(p, o.model.typ.Capacity) {
				continue
			}
			c := op.newCandidate(i, o, lots)
			if t, value := op.fillNode(c); value > o.Price && value/o.Price > most { // an overlay may have made it dear
				best, takes, most, draw = c, t, value/o.Price, d
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

// coveringCommitment is the first commitment with room for the offer, and how many nodes it has room for.
func (o *poolOffering) coveringCommitment(slots map[string]int64) (instancetypes.CommitmentDraw, int64) {
	for _, d := range o.Paid {
		if n := slots[d.Commitment] / d.Amount; n > 0 {
			return d, n
		}
	}
	return instancetypes.CommitmentDraw{}, 0
}

// paidOffers are the offers that commitments cover, without those that another of the same commitments beats.
func (op *nodeOpener) paidOffers(pools []*pool, lots []*podBatch) []*poolOffering {
	asks := waitingAdmissions(lots)
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

// paidRoom is what pods can be worth that the commitments have room for, at the most that one of each could hold, and
// adds how many pods of each class that could be, each alone.
func (r *roomWorth) paidRoom() float64 {
	worth, most := map[string]float64{}, map[string][]float64{} // of the whole of a commitment
	for _, pool := range r.w.catalog.pools {
		for _, o := range pool.paid {
			items, fitting := r.fitting(o)
			if len(items) == 0 {
				continue
			}
			value := r.filler.Fill(items, fitting, scaleNeed(o.room, r.x.units), &lowerbound.Basis{})
			for _, d := range o.Paid {
				nodes := float64(r.w.committed[d.Commitment]) / float64(d.Amount)
				worth[d.Commitment] = max(worth[d.Commitment], nodes*value)
				if most[d.Commitment] == nil {
					most[d.Commitment] = make([]float64, len(r.x.classes))
				}
				for k, i := range items {
					most[d.Commitment][i] = max(most[d.Commitment][i], nodes*fitting[k])
				}
			}
		}
	}
	sum := 0.0
	for _, id := range slices.Sorted(maps.Keys(worth)) {
		sum += worth[id]
		for i, n := range most[id] {
			r.hosted[i] += n
		}
	}
	return sum
}
