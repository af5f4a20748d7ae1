package lowerbound

import (
	"cmp"
	"math"
	"slices"

	"joiner.sh/pkg/scheduling/cover"
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

// fewFills caps the steps in which the best fill of whole pods is looked for where one that is good will do.
const fewFills = 2_000

// wholePodProblem is a problem whose nodes hold whole pods.
type wholePodProblem struct {
	*solver
	left  []float64   // by class: most pods that one holds
	work  int         // numbers it went through
	mosts []float64   // see mostNow
	needs [][]podNeed // by class: what a pod needs some of, see needsOf

	// Of the fill that is looked for.
	items  []nodeItem
	rest   []float64 // by item: what it and those after it may gain at most beside the worth of the room they take
	yield  []float64 // by item and resource: the most that it or one after it is worth for one unit
	scarce []int     // resources that some item and all after it need
	room   []float64 // left, by resource
	places []float64 // left, by group
	n      []int32   // by item: how many are in
	best   []int32
	most   float64 // worth of the best
	steps  int
}

func newWholePodProblem(s *solver) *wholePodProblem {
	return &wholePodProblem{solver: s, needs: needsOf(s.Classes)}
}

// priceWholePods finds the best fill of every offering at the filler's values and gives the master those that would pay
// at the pure ones. It returns how many did.
func (w *wholePodProblem) priceWholePods(pure []float64) (added int) {
	for i := range w.Offerings {
		o := &w.Offerings[i]
		w.findFill(o, i)
		w.work += len(o.Holds) + w.steps
		c, gain := column{cost: o.Price}, 0.0
		for j, n := range w.best {
			if k := w.items[j].class; n > 0 {
				c.class, c.amount = append(c.class, k), append(c.amount, float64(n))
				gain += float64(n) * pure[k]
			}
		}
		if gain > o.Price*(1+speck) {
			w.m.addColumn(c)
			added++
		}
	}
	return added
}

// leastBetter is by how many times a fill is worth more than another to be looked for.
const leastBetter = 1 + tolerance

// findFill looks for the fill of whole pods that is worth most, if one is worth more than the offering's price, by
// depth-first search under the prices of room that the best fill of fractions has.
func (w *wholePodProblem) findFill(o *cover.Offering, at int) {
	w.items, w.best, w.most, w.steps = w.items[:0], w.best[:0], o.Price*(1+speck), 0
	mosts := w.mostNow(o, at)
	if w.prices[at] != nil && // what proved that it holds little often still proves it
		w.filler.UpperBound(o.Holds, mosts, o.Room, w.prices[at]) <= w.most {
		return
	}
	upper := w.filler.Fill(o.Holds, mosts, o.Room, &w.basis[at])
	w.prices[at] = append(w.prices[at][:0], w.filler.Price...)
	if upper <= w.most {
		return
	}
	w.room, w.places = append(w.room[:0], o.Room...), append(w.places[:0], w.Caps...)
	w.collectItems(o.Holds, mosts)
	w.tryCounts(0, 0, w.roomWorth())
}

// needsOf returns by class the resources that one pod needs, with the amounts.
func needsOf(classes []cover.Class) [][]podNeed {
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
			gain -= w.filler.Price[r] * w.filler.ItemColumn(k, r)
		}
		w.items = append(w.items, nodeItem{class: k, group: w.Classes[k].Group, needs: w.needs[k],
			most: int32(min(n, plenty)), value: v, gain: gain})
	}
	slices.SortFunc(w.items, func(a, b nodeItem) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.class, b.class))
	})
	n, dims := len(w.items), w.filler.Dims
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
func (w *wholePodProblem) mostNow(o *cover.Offering, at int) []float64 {
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
	worth, dims := 0.0, w.filler.Dims
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
	worth, yield := math.Inf(1), w.yield[j*w.filler.Dims:]
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
