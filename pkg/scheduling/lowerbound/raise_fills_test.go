package lowerbound

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Giving fills leaves the fractional fleet as it was: what is raised further afterwards still is a fleet that holds all
// pods, and takes no offer more often than there are of it.
func TestGiveFillsLeavesTheFleetAsItIs(t *testing.T) {
	for seed := range uint64(8) {
		p := manyOddHosts(rand.New(rand.NewPCG(seed, 8)), 16, 60)
		plan, _ := firstFit(p)
		got := RaiseBound(p, SolvePrices(p).Value[:len(p.Classes)], plan, 3_000_000)
		for range 3 {
			got.GiveFills(3_000_000, false)
			got.RaiseFurther(onePodEach(p), 3_000_000)
			if wrong := fleetError(got.problem.m); wrong > 1e-4 {
				t.Errorf("seed %d: the fleet holds %.4f too many or too few of something", seed, wrong)
			}
		}
	}
}

// Pods that may be in any of some domains are in fills as far as these have room, no more in a domain than a spread
// allows, and what was chosen for them is told.
func TestGiveFillsGivesPodsThatAreOfAnyClass(t *testing.T) {
	p := CoverProblem{Offers: []NodeOffer{{Price: 1, Room: []float64{4}, Holds: []int32{0, 1, 2}}}}
	for domain := range int32(3) {
		p.Classes = append(p.Classes, PriceClass{Need: []float64{1}, Count: 1e-6, Group: -1})
		for range []int{2, 1, 0}[domain] {
			p.Offers = append(p.Offers, NodeOffer{Room: []float64{1}, Holds: []int32{domain}, Limit: 1})
		}
	}
	for _, buyFirst := range []bool{false, true} {
		for pods, want := range [][]int{{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {2, 1, 0}, {2, 1, 0}} {
			q := p
			q.Classes = append(slices.Clone(p.Classes), PriceClass{Need: []float64{1}, Count: float64(pods), Group: -1,
				AnyOf: []int32{0, 1, 2}, Each: 2})
			if pods == 2 { // no more than one in each domain
				q.Classes[3].Each = 1
			}
			raised := RaiseBound(q, []float64{0.5, 0.4, 0.3, 0}, nil, 10_000_000)
			got := raised.GiveFills(10_000_000, buyFirst)
			held := make([]int, 3)
			for _, fill := range got.Fills {
				for j, k := range fill.Class {
					held[k] += fill.Amount[j]
				}
			}
			chosen := got.Chosen[3]
			if pods == 1 && held[1] == 1 {
				want = []int{0, 1, 0} // as well
			}
			if !slices.Equal(held, want) {
				t.Errorf("%d pods: nodes hold %v in the domains, want %v", pods, held, want)
			}
			for d := range chosen {
				if chosen[d] < held[d] {
					t.Errorf("%d pods: nodes hold %v of them, and %v are chosen", pods, held, chosen)
				}
			}
		}
	}
}

// fleetError is by how much at most the fleet misses the demand of a row or the limit of an offer.
func fleetError(m *masterProblem) (worst float64) {
	held, taken := make([]float64, m.rowCount()), make([]float64, len(m.keys.limited))
	take := func(j int32, often float64) {
		c := &m.columns[j]
		for i, k := range c.class {
			held[m.row[k]] += often * c.amount[i]
		}
		if c.of > 0 {
			taken[c.of-1] += often
		}
	}
	for r, j := range m.basic {
		worst = max(worst, -m.has[r])
		if j >= 0 {
			take(j, m.has[r])
		} else {
			held[-1-j] -= m.has[r]
		}
	}
	for _, o := range m.keys.limited {
		worst = max(worst, -o.has)
		take(o.key, o.has)
	}
	for r, x := range held {
		worst = max(worst, math.Abs(x-m.demand[r]))
	}
	for i, x := range taken {
		worst = max(worst, math.Abs(x-m.keys.limited[i].limit))
	}
	return worst
}
