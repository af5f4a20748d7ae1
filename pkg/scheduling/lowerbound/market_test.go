package lowerbound

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"joiner.sh/pkg/scheduling/cover"
)

// market is a problem of the size and shape that the packer has: families of node types with the same price for a core
// and a gibibyte but for a few percent, and pods of most shapes, some of which keep apart or may not be everywhere.
func market(seed uint64, classes int) problem {
	r := rand.New(rand.NewPCG(seed, 5))
	p := problem{Rounds: 100, Caps: []float64{1, 2}}
	for k := range classes {
		cpu := float64(1+r.IntN(40)) / 10
		c := cover.Class{Need: []float64{cpu, cpu * []float64{1, 2, 4, 7, 12}[r.IntN(5)], 1},
			Count: float64(1 + r.IntN(40)), Group: -1, Kind: int32(k % 2)}
		if r.IntN(8) == 0 {
			c.Group = int32(r.IntN(2))
		}
		if r.IntN(8) == 0 {
			c.Most = float64(1 + r.IntN(3))
		}
		p.Classes = append(p.Classes, c)
	}
	for _, ratio := range []float64{2, 4, 8} {
		for _, cores := range []float64{2, 4, 8, 16, 32} {
			for zone := range 2 {
				o := cover.Offering{Price: (0.03*cores + 0.005*cores*ratio) * (0.9 + 0.2*r.Float64()),
					Room: []float64{cores - 0.2, cores*ratio - 1, 29}}
				for k, c := range p.Classes {
					if c.Kind == 0 || zone == 0 {
						o.Holds = append(o.Holds, int32(k))
					}
				}
				p.Offerings = append(p.Offerings, o)
			}
		}
	}
	return p
}

// Bound and fractional fleet of large problems come close within few rounds, and prices are near to what they are when
// a third of the classes has gone.
func TestMarketsArePricedCloselyInFewRounds(t *testing.T) {
	for _, c := range []struct {
		classes, rounds int
		gap, off        float64
	}{{12, 145, 5e-4, 0.031}, {30, 216, 8e-4, 0.0105}, {80, 328, 1e-3, 0.0013}} {
		rounds, gap, off := 0, 0.0, 0.0
		for seed := range uint64(10) {
			p := market(seed, c.classes)
			s := NewSolver(cover.Problem(p))
			got := s.Solve()
			rounds, gap = rounds+got.Rounds, gap+got.Least/got.Bound-1
			fewer := p
			fewer.Classes = slices.Clone(p.Classes)
			counts := make([]float64, len(p.Classes))
			for k := range counts {
				if k%3 == 0 {
					fewer.Classes[k].Count = 0
				}
				counts[k] = fewer.Classes[k].Count
			}
			worth := 0.0
			for k, v := range s.Reprice(counts, 0) {
				worth += counts[k] * v
			}
			off += math.Abs(worth/SolvePrices(fewer).Bound - 1)
		}
		t.Logf("%d classes: %d rounds, gap %.5f, repriced off by %.5f", c.classes, rounds, gap/10, off/10)
		if rounds > c.rounds || gap/10 > c.gap || off/10 > c.off {
			t.Errorf("%d classes: %d rounds, want at most %d; gap %.5f, want %.5f; repriced off by %.5f, want %.5f",
				c.classes, rounds, c.rounds, gap/10, c.gap, off/10, c.off)
		}
	}
}

// Shapes that stand for many classes cost little of the bound and save most of the work.
func TestSmallerMarketsHaveNearlyTheBound(t *testing.T) {
	for _, c := range []struct {
		classes     int
		part, fewer float64
	}{{12, 0.9945, 0.95}, {30, 0.9985, 0.75}, {80, 0.9998, 0.45}} {
		bound, closely, rows, all := 0.0, 0.0, 0, 0
		for seed := range uint64(10) {
			p := market(seed, c.classes)
			s := NewSolver(cover.Problem(p))
			bound, rows = bound+s.Solve().Bound, rows+s.s.m.rowCount()
			whole := newSolver(p)
			closely, all = closely+whole.generateColumns().Bound, all+whole.m.rowCount()
		}
		part, fewer := bound/closely, float64(rows)/float64(all)
		t.Logf("%d classes: %.4f of the bound, with %.2f of the classes", c.classes, part, fewer)
		if part < c.part || part > 1.001 || fewer > c.fewer {
			t.Errorf("%d classes: %.4f of the bound, want %.4f, with %.2f of the classes, want %.2f",
				c.classes, part, c.part, fewer, c.fewer)
		}
	}
}

// A fleet that is looked for anew, from a node for each class alone, costs what it cost before, or hardly less.
func TestAFreshBasisComesToTheSameCost(t *testing.T) {
	for seed := range uint64(10) {
		s := newSolver(market(seed, 20))
		s.generateColumns()
		before := s.m.fleetCost()
		s.m.restartBasis()
		if after := s.m.fleetCost(); after > before*(1+1e-6) || after < before*(1-1e-4) {
			t.Errorf("seed %d: %v before, %v after", seed, before, after)
		}
	}
}

// A fleet that is looked for anew for other counts, once columns were dropped, costs what the mended one costs, or
// hardly less.
func TestAFreshBasisForOtherCountsComesToTheSameCost(t *testing.T) {
	for seed := range uint64(10) {
		p := market(seed, 20)
		s := newSolver(p)
		s.generateColumns()
		counts := make([]float64, len(p.Classes))
		for k, c := range p.Classes {
			counts[k] = c.Count * float64(k%3) / 2
		}
		s.m.demandIs(counts, mend)
		mended := s.m.fleetCost()
		s.m.demandIs(counts, 0)
		if fresh := s.m.fleetCost(); fresh > mended*(1+1e-6) || fresh < mended*(1-1e-3) {
			t.Errorf("seed %d: %v mended, %v anew", seed, mended, fresh)
		}
	}
}

// The fills that are known when other counts are priced can only cost more than the best ones, so prices that come to
// less than the bound of those counts rest on exchanges that Solve found wrong.
func TestOtherCountsArePricedWithoutWrongExchanges(t *testing.T) {
	for seed := range uint64(6) {
		p := market(seed, 40)
		for k := range p.Classes {
			if k%4 == 0 {
				p.Classes[k].Most = 1 + float64(k%3)
			}
		}
		s := NewSolver(cover.Problem(p))
		s.Solve()
		p.Classes = slices.Clone(p.Classes)
		counts := make([]float64, len(p.Classes))
		for k := range p.Classes {
			counts[k] = math.Floor(p.Classes[k].Count * float64(k*7%5) / 4)
			p.Classes[k].Count = counts[k]
		}
		worth := 0.0
		for k, y := range s.Reprice(counts, 0) {
			worth += counts[k] * y
		}
		if bound := SolvePrices(p).Bound; worth < bound*(1-1e-3) {
			t.Errorf("seed %d: prices come to %v, the bound is %v", seed, worth, bound)
		}
	}
}

// Fleets of whole nodes for markets cost little more than the bound, in little work.
func TestFleetsOfMarketsAreNearTheirBound(t *testing.T) {
	for _, c := range []struct {
		classes int
		most    float64
		steps   int
	}{{12, 1.0491, 1_170_000}, {30, 1.0253, 17_600_000}} {
		bound, usd, steps := 0.0, 0.0, 0
		for seed := range uint64(10) {
			p := market(seed, c.classes)
			bound += SolvePrices(p).Bound
			d := newDive(p, 0)
			for d.buyMore() {
			}
			steps += d.w.work + d.w.m.work
			for _, n := range d.fleet {
				usd += p.Offerings[n.Offering].Price
			}
		}
		t.Logf("%d classes: %.5f of the bound in %d steps", c.classes, usd/bound, steps)
		if usd > bound*c.most || usd < bound || steps > c.steps {
			t.Errorf("%d classes: %.5f of the bound in %d steps, want at most %v in %d", c.classes, usd/bound, steps,
				c.most, c.steps)
		}
	}
}
