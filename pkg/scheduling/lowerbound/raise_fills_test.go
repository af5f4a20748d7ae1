package lowerbound

import (
	"math"
	"math/rand/v2"
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
			got.GiveFills(3_000_000)
			got.RaiseFurther(onePodEach(p), 3_000_000)
			if wrong := fleetError(got.problem.m); wrong > 1e-4 {
				t.Errorf("seed %d: the fleet holds %.4f too many or too few of something", seed, wrong)
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
