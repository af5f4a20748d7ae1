package packing

import (
	"math"
	"slices"
	"strings"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/scheduling/capacity"
)

// openReserved makes nodes in capacity that is reserved, and so paid for, before any other of the pools: each time
// those that would save most.
func (op NodeOpener) openReserved(pools []*capacity.OfferingPool, batches []*PodBatch) {
	var offerings []*capacity.Offering
	for _, p := range pools {
		if p.MayBeOneType {
			offerings = append(offerings, p.Reserved...)
		}
	}
	if len(offerings) == 0 {
		return
	}
	for _, batch := range batches {
		if batch.Value = op.A.W.Catalog.MinPriceShare(batch.View, batch.Pins); batch.Value >= capacity.NoPrice {
			batch.Value = instancetypes.BeyondUSD // only reserved capacity can take it
		}
	}
	for !op.A.Used.ClaimsUsedUp() {
		o, takes := op.mostValuable(offerings, batches)
		if o == nil {
			return
		}
		if n, _ := op.A.openCopies(o, takes, math.MaxInt32); n == 0 {
			return
		}
	}
}

// mostValuable is the offering of which a node would hold what is worth most, and what that is; nil when none is left.
func (op NodeOpener) mostValuable(
	offerings []*capacity.Offering, batches []*PodBatch,
) (*capacity.Offering, []BatchTake) {
	var best *capacity.Offering
	var takes []BatchTake
	most := 0.0
	for i, o := range offerings {
		if op.A.Used.spotAllowance(o, 1) == 0 ||
			op.A.Used.ExceedsLimits(o.InstanceType.Pool, o.InstanceType.Type.Capacity) {
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
func (op NodeOpener) openPaid(pools []*capacity.OfferingPool, batches []*PodBatch) {
	if !slices.ContainsFunc(pools, func(p *capacity.OfferingPool) bool { return len(p.Paid) > 0 && !p.MinValues() }) {
		return
	}
	for _, batch := range batches {
		if batch.Value = op.A.W.Catalog.MinPriceShare(batch.View, batch.Pins); batch.Value >= capacity.NoPrice {
			batch.Value = 0 // only what is to be had without a commitment as well
		}
	}
	offerings := op.paidOfferings(pools, batches)
	for !op.A.Used.ClaimsUsedUp() {
		var best *Candidate
		var takes []BatchTake
		most, draw := 0.0, instancetypes.CommitmentDraw{}
		for i, o := range offerings {
			p := o.InstanceType.Pool
			d, n := o.CoveringCommitment(op.A.Used.slots)
			if n == 0 || op.A.Used.ExceedsLimits(p, o.InstanceType.Type.Capacity) {
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
		o := *best.Offering
		o.Paid = []instancetypes.CommitmentDraw{draw}
		if n, _ := op.A.openCopies(&o, takes, math.MaxInt32); n == 0 {
			return
		}
	}
}

// paidOfferings are the offerings that commitments cover, without those that another of the same commitments beats.
func (op NodeOpener) paidOfferings(pools []*capacity.OfferingPool, batches []*PodBatch) []*capacity.Offering {
	asks := waitingAdmissions(batches)
	var out []*capacity.Offering
	for _, p := range pools {
		if p.MinValues() { // a commitment is looked at for one type at a time
			continue
		}
		groups := map[string][]*capacity.Offering{}
		var order []string
		for _, o := range p.Paid {
			id := commitmentIDs(o)
			if groups[id] == nil {
				order = append(order, id)
			}
			groups[id] = append(groups[id], o)
		}
		for _, id := range order {
			out = append(out, p.FilterUndominated(groups[id], asks)...)
		}
	}
	return out
}

// commitmentIDs are the ids of those that cover the offering.
func commitmentIDs(o *capacity.Offering) string {
	var ids []string
	for _, d := range o.Paid {
		ids = append(ids, d.Commitment)
	}
	return strings.Join(ids, " ")
}
