package lowerbound

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
func (w *wholePodProblem) findFill(o *NodeOffering, at int) {
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
