package lowerbound

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A fleet costs the same whether an offer with a limit has a row of its own or is told by how its columns differ from
// one of them.
func TestLimitedOffersNeedNoRow(t *testing.T) {
	steps := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		classes, offers := 2+r.IntN(8), 1+r.IntN(12)
		rows := make([]PriceClass, classes+offers)
		alone := make([]column, classes+offers)
		for k := range classes {
			rows[k] = PriceClass{Count: 5 + 20*r.Float64()}
			alone[k] = column{cost: 1 + r.Float64(), class: []int32{int32(k)}, amount: []float64{float64(1 + r.IntN(3))}}
		}
		without := newMaster(rows[:classes], alone[:classes])
		for i := range offers {
			limit := float64(1 + r.IntN(2))
			rows[classes+i] = PriceClass{Count: -limit}
			without.addLimited(limit)
		}
		with := newMaster(rows, alone)
		with.pricing.absolute, without.pricing.absolute = true, true
		for i := range offers {
			for range 1 + r.IntN(6) {
				fill := column{}
				for k := range classes {
					if n := r.IntN(4); n > 0 {
						fill.class, fill.amount = append(fill.class, int32(k)), append(fill.amount, float64(n))
					}
				}
				row, key := fill, fill
				key.of = int32(i + 1)
				row.class = append([]int32{int32(classes + i)}, fill.class...)
				row.amount = append([]float64{-1}, fill.amount...)
				with.addColumn(row)
				without.addColumn(key)
			}
		}
		with.improveBasis()
		without.improveBasis()
		steps += without.steps
		want, got := with.fleetCost(), without.fleetCost()
		if math.Abs(want-got) > 1e-6*want {
			t.Errorf("seed %d: the fleet costs %.9f, want %.9f", seed, got, want)
		}
		without.refactorBasis()
		if again := without.fleetCost(); math.Abs(again-got) > 1e-6*want {
			t.Errorf("seed %d: the fleet costs %.9f after a new inverse, %.9f before", seed, again, got)
		}
		takes := make([]float64, offers)
		for i, o := range without.keys.limited {
			takes[i] = o.has
		}
		for at, j := range without.basic {
			if j >= 0 && without.columns[j].of > 0 {
				takes[without.columns[j].of-1] += without.has[at]
			}
		}
		for i, n := range takes {
			if math.Abs(n-without.keys.limited[i].limit) > 1e-6 {
				t.Errorf("seed %d: offer %d is taken %.6f times, want %.0f", seed, i, n, without.keys.limited[i].limit)
			}
		}
	}
	if steps < 3000 {
		t.Errorf("%d steps in all: this test says nothing", steps)
	}
}

// Of three pods that spread over two zones each zone holds one at least. The third goes where it costs less, here to
// the node that is there, whose room the bound must not count on in the other zone.
func TestRaiseBoundLeavesOpenWherePodsSpread(t *testing.T) {
	p := CoverProblem{Classes: []PriceClass{
		{Need: []float64{1}, Count: 1, Group: -1}, {Need: []float64{1}, Count: 1, Group: -1},
		{Need: []float64{1}, Count: 1, Group: -1, AnyOf: []int32{0, 1}},
	}, Offers: []NodeOffer{
		{Price: 2, Room: []float64{1}, Holds: []int32{0}}, {Price: 5, Room: []float64{1}, Holds: []int32{1}},
		{Room: []float64{1}, Holds: []int32{1}, Limit: 1},
	}}
	got := RaiseBound(p, []float64{2, 5, 100}, nil, 50_000_000)
	if math.Abs(got.Bound-4) > 0.01 {
		t.Errorf("the bound is %.3f, want 4: two pods on nodes for 2 in the first zone", got.Bound)
	}
	if got.Value[2] > min(got.Value[0], got.Value[1])+1e-9 {
		t.Errorf("a pod in any zone is worth %.3f, in one of them %.3f and %.3f", got.Value[2], got.Value[0], got.Value[1])
	}
}
