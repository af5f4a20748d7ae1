package lowerbound

import (
	"cmp"
	"math"
	"slices"
)

// nodeItem is a class that a node may hold.
type nodeItem struct {
	class int32
	group int32 // -1 for none
	needs []podNeed
	value float64
	most  int32
	gain  float64 // its value less the worth of the room that one takes
}

// podNeed is the amount that a pod needs of one resource, more than none.
type podNeed struct {
	resource int
	amount   float64
}

// needsOf returns by class the resources that one pod needs, with the amounts.
func needsOf(classes []PriceClass) [][]podNeed {
	out := make([][]podNeed, len(classes))
	for k, c := range classes {
		for r, x := range c.Need {
			if x > 0 {
				out[k] = append(out[k], podNeed{r, x})
			}
		}
	}
	return out
}

// collectItems collects the classes of which a node may hold some.
func (w *wholePodProblem) collectItems(holds []int32, mosts []float64) {
	for j, k := range holds {
		v, n := w.filler.Value[k], mosts[j]
		if v <= 0 || n < 1 || w.m.row[k] < 0 {
			continue
		}
		gain := v
		for r := range w.filler.Price {
			gain -= w.filler.Price[r] * w.filler.itemColumn(k, r)
		}
		w.items = append(w.items, nodeItem{class: k, group: w.Classes[k].Group, needs: w.needs[k],
			most: int32(min(n, plenty)), value: v, gain: gain})
	}
	slices.SortFunc(w.items, func(a, b nodeItem) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.class, b.class))
	})
	n, dims := len(w.items), w.filler.dims
	w.rest, w.yield = append(w.rest[:0], make([]float64, n+1)...), append(w.yield[:0], make([]float64, (n+1)*dims)...)
	for j := n - 1; j >= 0; j-- {
		it := &w.items[j]
		w.rest[j] = w.rest[j+1] + max(0, it.gain)*float64(it.most)
		for r, x := range w.Classes[it.class].Need {
			w.yield[j*dims+r] = max(w.yield[(j+1)*dims+r], it.value/x)
		}
	}
	w.scarce = w.scarce[:0]
	for r := range dims {
		if n > 0 && !math.IsInf(w.yield[(n-1)*dims+r], 1) {
			w.scarce = append(w.scarce, r)
		}
	}
	w.n, w.best = append(w.n[:0], make([]int32, n)...), append(w.best[:0], make([]int32, n)...)
}

// mostNow returns the number of pods that one node may have, of each class that the offering holds.
func (w *wholePodProblem) mostNow(o *NodeOffering, at int) []float64 {
	most := w.solver.most[at]
	w.mosts = w.mosts[:0]
	for j, k := range o.Holds {
		w.mosts = append(w.mosts, min(most[j], w.left[k]))
	}
	return w.mosts
}

// tryCounts tries all numbers of the item and those after it, most first, with what is worth so much in the node
// already.
func (w *wholePodProblem) tryCounts(j int, worth, room float64) {
	if worth > w.most {
		w.most = worth
		copy(w.best, w.n)
	}
	for ; j < len(w.items); j++ {
		it := &w.items[j]
		if w.steps++; w.steps > fewFills {
			return
		}
		spare := room + w.rest[j] - w.most*leastBetter // what may be lost of it to leave a fill that is worth enough
		if spare <= 0 || worth+w.bestYield(j) <= w.most*leastBetter {
			return
		}
		if spare+it.gain <= 0 {
			continue
		}
		most := w.fitCount(it)
		if it.gain < 0 {
			most = min(most, int32(min(spare/-it.gain, plenty)))
		}
		w.takeRoom(it, float64(most))
		for n := most; n > 0; n-- {
			w.n[j] = n
			w.tryCounts(j+1, worth+float64(n)*it.value, room+float64(n)*it.gain)
			w.takeRoom(it, -1)
		}
		w.n[j] = 0
	}
}

// roomWorth returns the worth of the room that is left, by its prices.
func (w *wholePodProblem) roomWorth() float64 {
	worth, dims := 0.0, w.filler.dims
	for r, x := range w.room {
		worth += w.filler.Price[r] * x
	}
	for g, x := range w.places {
		worth += w.filler.Price[dims+g] * x
	}
	return worth
}

// bestYield is the most that the item and those after it can be worth by the room that is left of one resource alone.
func (w *wholePodProblem) bestYield(j int) float64 {
	worth, yield := math.Inf(1), w.yield[j*w.filler.dims:]
	for _, r := range w.scarce {
		if x := yield[r] * w.room[r]; x < worth { // false where nothing is needed of the resource
			worth = x
		}
	}
	return worth
}

// fitCount returns how many more of the item the node can hold.
func (w *wholePodProblem) fitCount(it *nodeItem) int32 {
	n := float64(it.most)
	for _, x := range it.needs {
		n = min(n, w.room[x.resource]/x.amount)
	}
	n = math.Floor(n + tolerance)
	if it.group >= 0 {
		n = min(n, w.places[it.group])
	}
	return int32(max(0, n))
}

// takeRoom takes room for so many pods of the item.
func (w *wholePodProblem) takeRoom(it *nodeItem, n float64) {
	for _, x := range it.needs {
		w.room[x.resource] -= n * x.amount
	}
	if it.group >= 0 {
		w.places[it.group] -= n
	}
}
