package lowerbound

import (
	"math"
	"math/rand/v2"
	"testing"

	"joiner.sh/pkg/scheduling/cover"
)

// One class of pods that fill a node exactly, so that price and bound are known.
func TestSolveOneClass(t *testing.T) {
	got := SolvePrices(problem{
		Classes:   []cover.Class{{Need: []float64{1, 2}, Count: 100, Group: -1}},
		Offerings: []cover.Offering{{Price: 3, Room: []float64{10, 25}, Holds: []int32{0}}, {Price: 2, Room: []float64{5, 25}, Holds: []int32{0}}},
		Rounds:    10,
	})
	if math.Abs(got.Bound-30) > 1e-5 || math.Abs(got.Value[0]-0.3) > 1e-6 {
		t.Errorf("bound %v value %v, want 30 and 0.3", got.Bound, got.Value)
	}
}

// Two classes of opposite shape belong together: ten of each fill a node for 10 USD per hour, apart they would need
// twice as many.
func TestSolveMixesShapes(t *testing.T) {
	got := SolvePrices(problem{
		Classes:   []cover.Class{{Need: []float64{3, 1}, Count: 100, Group: -1}, {Need: []float64{1, 3}, Count: 100, Group: -1}},
		Offerings: []cover.Offering{{Price: 10, Room: []float64{40, 40}, Holds: []int32{0, 1}}},
		Rounds:    10,
	})
	if math.Abs(got.Bound-100) > 1e-5 || math.Abs(got.Least-100) > 1e-5 {
		t.Errorf("bound %v least %v, want 100", got.Bound, got.Least)
	}
}

// An exchange of one pod for parts of smaller ones is wrong where a node holds no parts of them: by their amounts 1.44
// of the small ones take the place of the large one, but a node holds two of either.
func TestSolveDropsWrongExchanges(t *testing.T) {
	got := SolvePrices(problem{
		Classes:   []cover.Class{{Need: []float64{4.9, 2}, Count: 1, Group: -1}, {Need: []float64{3.4, 1.3}, Count: 100, Group: -1}},
		Offerings: []cover.Offering{{Price: 1, Room: []float64{10, 10}, Holds: []int32{0, 1}}},
		Rounds:    60,
	})
	if got.Bound < 49.9 || got.Bound > 50.5 {
		t.Errorf("bound %v, want 50: a hundred pods by twos", got.Bound)
	}
}

// Work grows with the third power of the classes, so those without pods have no part in it.
func TestClassesWithoutPodsAreNoWork(t *testing.T) {
	s := NewSolver(cover.Problem{
		Classes:   []cover.Class{{Need: []float64{1, 2}, Count: 5, Group: -1}, {Need: []float64{2, 1}, Group: -1}},
		Offerings: []cover.Offering{{Price: 1, Room: []float64{10, 10}, Holds: []int32{0, 1}}},
		Rounds:    10,
	})
	if n := s.s.m.rowCount(); n != 1 {
		t.Errorf("it works with %d classes, want the one with pods", n)
	}
	if got := s.Solve(); got.Value[1] != 0 {
		t.Errorf("a class without pods is worth %v, want nothing", got.Value[1])
	}
}

// A group that keeps its pods apart needs a node for each pod.
func TestSolveGroups(t *testing.T) {
	got := SolvePrices(problem{
		Classes:   []cover.Class{{Need: []float64{1}, Count: 6, Group: 0}, {Need: []float64{2}, Count: 4, Group: 0}, {Need: []float64{1}, Count: 4, Group: -1}},
		Offerings: []cover.Offering{{Price: 1, Room: []float64{8}, Holds: []int32{0, 1, 2}}},
		Caps:      []float64{1}, Rounds: 40,
	})
	if math.Abs(got.Bound-10) > 0.01 {
		t.Errorf("bound %v, want 10", got.Bound)
	}
}

// The obligations of the proof, on problems small enough to try every fleet: the bound is at most the price of the best
// one, and no node can hold pods of more worth than it costs.
func TestSolveNeverExceedsTheBestFleet(t *testing.T) {
	tight := 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := small(r)
		if seed%4 == 0 {
			p = alike(r)
		}
		got := SolvePrices(p)
		best := bruteForce(p)
		if got.Bound > best*(1+1e-7)+1e-9 {
			t.Fatalf("seed %d: bound %v, but a fleet costs %v: %+v", seed, got.Bound, best, p)
		}
		if got.Bound > best*0.999 {
			tight++
		}
		checkWorth(t, seed, p, got.Value)
	}
	if tight < 400 {
		t.Errorf("the bound was met in %d of 4000 problems only, which is too loose to be right", tight)
	}
}

func small(r *rand.Rand) problem {
	p := problem{Rounds: 1 + r.IntN(12)}
	dims := 1 + r.IntN(3)
	for range r.IntN(3) {
		p.Caps = append(p.Caps, float64(1+r.IntN(2)))
	}
	for range 1 + r.IntN(3) {
		c := cover.Class{Count: float64(r.IntN(4)), Group: int32(r.IntN(len(p.Caps)+1) - 1)}
		for range dims {
			c.Need = append(c.Need, float64(r.IntN(5)))
		}
		if r.IntN(4) == 0 {
			c.Most = float64(1 + r.IntN(2))
		}
		p.Classes = append(p.Classes, c)
	}
	for i := range 1 + r.IntN(3) {
		o := cover.Offering{Price: 0.5 + r.Float64()*4}
		for range dims {
			o.Room = append(o.Room, float64(1+r.IntN(12)))
		}
		for k := range p.Classes {
			if i == 0 || r.IntN(3) > 0 {
				o.Holds = append(o.Holds, int32(k))
			}
		}
		p.Offerings = append(p.Offerings, o)
	}
	// A class that fits nowhere is left out of the bound; let there be none.
	for k := range p.Classes {
		fits := false
		for _, o := range p.Offerings {
			for _, h := range o.Holds {
				fits = fits || int(h) == k && p.mostOn(int32(k), o.Room) > 0
			}
		}
		if !fits {
			p.Classes[k].Count = 0
		}
	}
	return p
}

// alike has so many classes that may be on the same offerings that they are priced by shapes.
func alike(r *rand.Rand) problem {
	p := problem{Rounds: 1 + r.IntN(12)}
	for range 4 + r.IntN(2) {
		p.Classes = append(p.Classes, cover.Class{Need: []float64{float64(1 + r.IntN(5)), float64(1 + r.IntN(5)), 1}, Count: float64(r.IntN(3)), Group: -1})
	}
	for range 1 + r.IntN(2) {
		o := cover.Offering{Price: 0.5 + r.Float64()*4, Room: []float64{float64(5 + r.IntN(8)), float64(5 + r.IntN(8)), float64(1 + r.IntN(4))}}
		for k := range p.Classes {
			o.Holds = append(o.Holds, int32(k))
		}
		p.Offerings = append(p.Offerings, o)
	}
	return p
}

// fills lists every set of whole pods that fits on one node of the offering.
func fills(p problem, o cover.Offering) [][]int {
	out := [][]int{make([]int, len(p.Classes))}
	for _, k := range o.Holds {
		for _, f := range out {
			for n := 1; n <= int(p.Classes[k].Count); n++ {
				g := append([]int(nil), f...)
				g[k] = n
				if holds(p, o, g) {
					out = append(out, g)
				}
			}
		}
	}
	return out
}

func holds(p problem, o cover.Offering, fill []int) bool {
	used, places := make([]float64, len(o.Room)), make([]float64, len(p.Caps))
	for k, n := range fill {
		c := p.Classes[k]
		for r, x := range c.Need {
			used[r] += x * float64(n)
		}
		if c.Group >= 0 {
			places[c.Group] += float64(n)
		}
		if c.Most > 0 && float64(n) > c.Most {
			return false
		}
	}
	for r := range used {
		if used[r] > o.Room[r] {
			return false
		}
	}
	for g := range places {
		if places[g] > p.Caps[g] {
			return false
		}
	}
	return true
}

// bruteForce finds the price of the best fleet by going through every number of pods of each class.
func bruteForce(p problem) float64 {
	type way struct {
		fill  []int
		price float64
	}
	var ways []way
	for _, o := range p.Offerings {
		for _, f := range fills(p, o)[1:] {
			ways = append(ways, way{f, o.Price})
		}
	}
	size := 1
	for _, c := range p.Classes {
		size *= int(c.Count) + 1
	}
	cost := make([]float64, size)
	for code := 1; code < size; code++ {
		cost[code] = math.Inf(1)
		for _, w := range ways {
			rest, scale, left, some := code, 1, 0, false
			for k, c := range p.Classes {
				base := int(c.Count) + 1
				n := rest % base
				rest /= base
				some = some || n > 0 && w.fill[k] > 0
				left += max(0, n-w.fill[k]) * scale
				scale *= base
			}
			if some {
				cost[code] = min(cost[code], cost[left]+w.price)
			}
		}
	}
	return cost[size-1]
}

// checkWorth fails where what fits on an offering is worth more than the offering costs.
func checkWorth(t *testing.T, seed uint64, p problem, value []float64) {
	t.Helper()
	for _, o := range p.Offerings {
		for _, fill := range fills(p, o) {
			worth := 0.0
			for k, n := range fill {
				worth += float64(n) * value[k]
			}
			if worth > o.Price*(1+1e-7) {
				t.Fatalf("seed %d: %v on %+v is worth %v", seed, fill, o, worth)
			}
		}
	}
}

// SolvePrices prices the classes with a solver of its own.
func SolvePrices(p problem) ClassPrices { return NewSolver(cover.Problem(p)).Solve() }
