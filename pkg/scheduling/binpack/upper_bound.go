package binpack

import (
	"cmp"
	"math"
	"slices"
)

// upperBound tells quickly what nodes would hold at most: fractions of pods, and of one resource alone as much as there
// is.
type upperBound struct {
	lots  []*podBatch
	order [][]int // by resource: the lots, best use of it first
	fits  []int   // by lot: how many pods the offer holds, of it alone
}

func newGauge(lots []*podBatch, dims int) *upperBound {
	g := &upperBound{}
	for _, l := range lots {
		if l.left > 0 {
			g.lots = append(g.lots, l)
		}
	}
	g.fits = make([]int, len(g.lots))
	for d := range dims {
		density := make([]float64, len(g.lots))
		order := make([]int, len(g.lots))
		some := false
		for i, l := range g.lots {
			order[i], density[i] = i, math.Inf(1)
			if x := l.view.kind.need[d]; x > 0 {
				density[i], some = l.value/float64(x), true
			}
		}
		if some {
			slices.SortFunc(order, func(x, y int) int {
				return cmp.Or(cmp.Compare(density[y], density[x]),
					cmp.Compare(x, y))
			})
			g.order = append(g.order, order)
		} else {
			g.order = append(g.order, nil)
		}
	}
	return g
}

// maxWorth is more than what a new node of the offer would hold can be worth, 0 where it holds nothing.
func (g *upperBound) maxWorth(o *poolOffering) float64 {
	sum := 0.0
	for i, l := range g.lots {
		g.fits[i] = 0
		if l.admit.firstAlternative(o) >= 0 {
			g.fits[i] = min(l.left, fitCount(l.view.kind.need, o.room))
			sum += float64(g.fits[i]) * l.value
		}
	}
	for d, order := range g.order {
		if order == nil || sum == 0 {
			continue
		}
		room, value := float64(o.room[d]), 0.0
		for _, i := range order {
			n := float64(g.fits[i])
			if x := float64(g.lots[i].view.kind.need[d]); x > 0 {
				n = min(n, room/x)
				room -= n * x
			}
			value += n * g.lots[i].value
			if room <= 0 {
				break
			}
		}
		sum = min(sum, value)
	}
	return sum * (1 + 1e-9)
}
