package prices

import (
	"maps"
	"slices"

	"joiner.sh/pkg/model/rounding"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/cover"
	"joiner.sh/pkg/scheduling/packing"
)

// LowerBound returns the least cost of any plan that gives a place to all pods that the solution gives one: the larger
// of two proven bounds. New nodes are priced by their cheapest offering. Neither knows of limits or weights of pools,
// which can only make plans dearer.
func (px *Pricing) LowerBound(s *packing.Solution) float64 {
	if s.Used.Opened == 0 || px.Worth == nil {
		return 0
	}
	p := boundProof{w: s.W, known: px.proven, placed: make([]int, len(s.Rest))}
	for i, class := range s.W.Classes.List {
		p.placed[i] = len(class.Pods) - len(s.Rest[i])
	}
	usd := p.provenUSD(nil)
	for _, x := range []*ShadowPrices{px.Worth, px.Alone} {
		if x != nil {
			usd = max(usd, p.provenUSD(x))
		}
	}
	return usd
}

// IsNearBound reports whether the solution's new nodes cost no more than the lower bound and this part of it.
func (px *Pricing) IsNearBound(s *packing.Solution, gap float64) bool {
	return s.NewNodePrice() <= px.LowerBound(s)*(1+gap)
}

// provenUSD returns the bound that the prices prove, or without prices the bound of single nodes. What was proven last
// is remembered: most solutions place the same pods.
func (p boundProof) provenUSD(x *ShadowPrices) float64 {
	known, ok := p.known[x]
	if ok && slices.Equal(known.placed, p.placed) {
		return known.usd
	}
	if known = (provenBound{placed: p.placed}); x == nil {
		known.usd = p.singleNodeBound()
	} else {
		known.usd = p.sharedBound(x)
	}
	p.known[x] = known
	return known.usd
}

// boundProof proves what pods cost at least.
type boundProof struct {
	w      *packing.Problem
	known  map[*ShadowPrices]provenBound // what was proven last, by the prices that proved it
	placed []int                         // by class: how many of its pods have a place
}

// singleNodeBound is the price of the cheapest node for the pod that is hardest to please, of those that no host and no
// reservation can take: a whole node has to be made for it.
func (p boundProof) singleNodeBound() float64 {
	most := 0.0
	for i, class := range p.w.Classes.List {
		if p.placed[i] == 0 {
			continue
		}
		if price := p.w.Catalog.CheapestNode(class.LastRelaxation()); price < capacity.NoPrice && price > most &&
			!p.w.RoomFor(class.LastRelaxation()) {
			most = price
		}
	}
	return most * (1 - rounding.Error)
}

// sharedBound returns the worth of the pods, less the worth of those that the room there is could hold.
func (p boundProof) sharedBound(x *ShadowPrices) float64 {
	value, counts := x.Prices.Value, make([]float64, len(x.Classes))
	sum, loosened := 0.0, 0.0
	for i := range p.w.Classes.List {
		loose, each := x.members[i].addMinimumCounts(p.placed[i], value, counts)
		sum += float64(loose) * each
		loosened += float64(loose) * each
	}
	r := &roomWorth{w: p.w, x: x, filler: cover.NewFiller(len(p.w.Dims), nil),
		hosted: make([]float64, len(counts))}
	r.filler.Value = value
	for c, n := range counts {
		r.filler.Need = append(r.filler.Need, x.Problem.Classes[c].Need...)
		r.filler.Group = append(r.filler.Group, -1)
		sum += n * value[c]
	}
	r.addHosts()
	r.addReserved()
	r.usd += r.paidRoom()
	each := 0.0 // the same, where no class has more pods than it has
	for i, n := range r.hosted {
		each += value[i] * min(n, counts[i])
	}
	return max(0, (sum-min(r.usd, each+loosened))*(1-rounding.Error))
}

// roomWorth adds up the worth of the pods that the room there is could hold.
type roomWorth struct {
	w      *packing.Problem
	x      *ShadowPrices
	filler *cover.KnapsackSolver
	usd    float64
	hosted []float64 // by class: how many pods could be held, each class alone
}

// addHosts adds the nodes that exist or are on their way.
func (r *roomWorth) addHosts() {
	var items []int32
	var most []float64
	for _, b := range r.w.Nodes.Hosts {
		items, most = items[:0], most[:0]
		for i, c := range r.x.Classes {
			n := capacity.FitCount(c.need, b.Room)
			if apart := r.x.Problem.Classes[i].Most; apart > 0 {
				n = min(n, int(apart))
			}
			if n > 0 && r.filler.Value[i] > 0 && b.AlternativeFor(c.admit) >= 0 {
				items, most = append(items, int32(i)), append(most, float64(n))
				r.hosted[i] += float64(n)
			}
		}
		if len(items) > 0 {
			r.usd += r.filler.Fill(items, most, packing.ScaleNeed(b.Room, r.x.Units), &cover.Basis{})
		}
	}
}

// addReserved adds capacity reservations, which are paid for already.
func (r *roomWorth) addReserved() {
	for _, pool := range r.w.Catalog.Pools {
		for _, o := range pool.Reserved {
			nodes := float64(o.Reservation.Remaining)
			items, fitting := r.fitting(o)
			for j, i := range items {
				r.hosted[i] += fitting[j] * nodes
			}
			if len(items) > 0 {
				r.usd += r.filler.Fill(items, fitting, packing.ScaleNeed(o.Room, r.x.Units),
					&cover.Basis{}) * nodes
			}
		}
	}
}

// fitting are the classes that are worth something and can be on a node of the offering, and how many pods of each.
func (r *roomWorth) fitting(o *capacity.Offering) (items []int32, most []float64) {
	for i, c := range r.x.Classes {
		if n := capacity.FitCount(c.need, o.Room); n > 0 && r.filler.Value[i] > 0 && o.FirstAlternative(c.admit) >= 0 {
			items, most = append(items, int32(i)), append(most, float64(n))
		}
	}
	return items, most
}

// paidRoom returns the worth of the pods that the commitments have room for, at the most that one of each could hold.
// It adds how many pods of each class that could be, each alone.
func (r *roomWorth) paidRoom() float64 {
	worth, most := map[string]float64{}, map[string][]float64{} // of the whole of a commitment
	for _, pool := range r.w.Catalog.Pools {
		for _, o := range pool.Paid {
			items, fitting := r.fitting(o)
			if len(items) == 0 {
				continue
			}
			value := r.filler.Fill(items, fitting, packing.ScaleNeed(o.Room, r.x.Units), &cover.Basis{})
			for _, d := range o.Paid {
				nodes := float64(r.w.Committed[d.Commitment]) / float64(d.Amount)
				worth[d.Commitment] = max(worth[d.Commitment], nodes*value)
				if most[d.Commitment] == nil {
					most[d.Commitment] = make([]float64, len(r.x.Classes))
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
