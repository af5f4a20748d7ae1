package lowerbound

import (
	"math"
	"math/rand/v2"
	"testing"

	"joiner.sh/pkg/scheduling/cover"
)

// A pod of six tenths of a node and one of half a node cannot share it, and five of the smaller sort are cheaper on a
// large one than in pairs.
func TestFleetIsWhole(t *testing.T) {
	p := problem{
		Classes:   []cover.Class{{Need: []float64{6, 1}, Count: 10, Group: -1}, {Need: []float64{5, 1}, Count: 10, Group: -1}},
		Offerings: []cover.Offering{{Price: 2, Room: []float64{10, 10}, Holds: []int32{0, 1}}, {Price: 4.5, Room: []float64{25, 10}, Holds: []int32{1}}},
	}
	nodes := map[int32]int{}
	for _, n := range CoverByWholeNodes(cover.Problem(p), 0) {
		nodes[n.Offering]++
	}
	if nodes[0] != 10 || nodes[1] != 2 {
		t.Errorf("nodes by offering %v, want 10 of the first and 2 of the second", nodes)
	}
}

// Every fleet holds all pods, each of its nodes what fits, and hardly any costs more than the best.
func TestFleetHoldsAllAndIsNearTheBest(t *testing.T) {
	best, all, worst := 0, 0, 1.0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := small(r)
		if seed%4 == 0 {
			p = alike(r)
		}
		usd, left := 0.0, make([]int, len(p.Classes))
		for k, c := range p.Classes {
			left[k] = int(c.Count)
		}
		for _, n := range CoverByWholeNodes(cover.Problem(p), 0) {
			fill := make([]int, len(p.Classes))
			for i, k := range n.Class {
				fill[k] = n.Amount[i]
				left[k] -= n.Amount[i]
			}
			if !holds(p, p.Offerings[n.Offering], fill) {
				t.Fatalf("seed %d: no node of offering %d holds %v: %+v", seed, n.Offering, fill, p)
			}
			usd += p.Offerings[n.Offering].Price
		}
		for k, n := range left {
			if n != 0 {
				t.Fatalf("seed %d: %d pods of class %d are left: %+v", seed, n, k, p)
			}
		}
		least := bruteForce(p)
		if usd < least*(1-1e-7) {
			t.Fatalf("seed %d: a fleet for %v, but none costs less than %v: %+v", seed, usd, least, p)
		}
		if all++; usd < least*(1+1e-7)+1e-9 {
			best++
		}
		if least > 0 {
			worst = math.Max(worst, usd/least)
		}
	}
	t.Logf("the best of all fleets in %d of %d problems, at worst %.2f times its price", best, all, worst)
	if best < all*9/10 || worst > 1.7 {
		t.Errorf("the best of all fleets in %d of %d problems, at worst %.2f times its price", best, all, worst)
	}
}
