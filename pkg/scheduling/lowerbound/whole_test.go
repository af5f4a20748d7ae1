package lowerbound

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A pod of six tenths of a node and one of half a node cannot share it, which fractions of pods hide.
func TestWholePodsNeedWholePlaces(t *testing.T) {
	p := CoverProblem{
		Classes: []PriceClass{{Need: []float64{6, 1}, Count: 10, Group: -1}, {Need: []float64{5, 1}, Count: 10, Group: -1}},
		Offers:  []NodeOffer{{Price: 2, Room: []float64{10, 10}, Holds: []int32{0, 1}}},
		Rounds:  40,
	}
	if got := SolveWholePods(p); math.Abs(got.Bound-30) > 0.03 || got.Least < got.Bound {
		t.Errorf("bound %v and fleet %v, want 30", got.Bound, got.Least)
	}
	if got := SolvePrices(p); got.Bound > 22.1 {
		t.Errorf("with fractions of pods the bound is %v, want 22: the problem shows nothing", got.Bound)
	}
}

// The same obligations as those of Solve, and a bound that is met more often.
func TestWholeNeverExceedsTheBestFleet(t *testing.T) {
	tight, before := 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := small(r)
		if seed%4 == 0 {
			p = alike(r)
		}
		p.Rounds = 30
		got, fractions := SolveWholePods(p), SolvePrices(p)
		best := bruteForce(p)
		if got.Bound > best*(1+1e-7)+1e-9 {
			t.Fatalf("seed %d: bound %v, but a fleet costs %v: %+v", seed, got.Bound, best, p)
		}
		if got.Bound < fractions.Bound*(1-0.01) {
			t.Errorf("seed %d: bound %v, with fractions of pods %v: %+v", seed, got.Bound, fractions.Bound, p)
		}
		if got.Bound > best*0.999 {
			tight++
		}
		if fractions.Bound > best*0.999 {
			before++
		}
		checkWorth(t, seed, p, got.Value)
	}
	if tight < before*5/4 {
		t.Errorf("the bound was met in %d of 2000 problems, with fractions of pods in %d", tight, before)
	}
	t.Logf("met in %d of 2000 problems, with fractions of pods in %d", tight, before)
}
