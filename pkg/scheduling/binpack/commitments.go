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
func (a *solution) openPaid(pools []*pool, lots []*podBatch) {
	if !slices.ContainsFunc(pools, func(p *pool) bool { return len(p.paid) > 0 && !p.minValues() }) {
		return
	}
	for _, l := range lots {
		if l.value = a.w.catalog.minPriceShare(l.view, l.pins); l.value >= noPrice {
			l.value = 0 // only what is to be had without a commitment as well
		}
	}
	offers := a.paidOffers(pools, lots)
	for !a.atMost() {
		var best *candidate
		var takes []batchTake
		most, draw := 0.0, instancetypes.CommitmentDraw{}
		for i, o := range offers {
			p := o.model.pool
			d, n := o.coveringCommitment(a.slots)
			if n == 0 || len(p.exceededLimits(a.usage[p.id], o.model.typ.Capacity)) > 0 {
				continue
			}
			c := a.newCandidate(i, o, lots)
			if t, value := a.fillNode(c); value > o.Price && value/o.Price > most { // an overlay may have made it dear
				best, takes, most, draw = c, t, value/o.Price, d
			}
		}
		if best == nil {
			return
		}
		o := *best.offer
		o.Paid = []instancetypes.CommitmentDraw{draw}
		if n, _ := a.openCopies(&o, takes, math.MaxInt32); n == 0 {
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
func (a *solution) paidOffers(pools []*pool, lots []*podBatch) []*poolOffering {
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
// adds to hosted how many pods of each class that could be, each alone.
func (a *solution) paidRoom(f *lowerbound.KnapsackSolver, hosted []float64) float64 {
	p := a.w.worth
	worth, most := map[string]float64{}, map[string][]float64{} // of the whole of a commitment
	var items []int32
	var fitting []float64
	for _, pool := range a.w.catalog.pools {
		for _, o := range pool.paid {
			items, fitting = items[:0], fitting[:0]
			for i, c := range p.classes {
				if n := fitCount(c.need, o.room); n > 0 && p.prices.Value[i] > 0 && c.admit.firstAlternative(o) >= 0 {
					items, fitting = append(items, int32(i)), append(fitting, float64(n))
				}
			}
			if len(items) == 0 {
				continue
			}
			value := f.Fill(items, fitting, scaleNeed(o.room, p.units), &lowerbound.Basis{})
			for _, d := range o.Paid {
				nodes := float64(a.w.committed[d.Commitment]) / float64(d.Amount)
				worth[d.Commitment] = max(worth[d.Commitment], nodes*value)
				if most[d.Commitment] == nil {
					most[d.Commitment] = make([]float64, len(p.classes))
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
			hosted[i] += n
		}
	}
	return sum
}
