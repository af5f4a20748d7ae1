package lowerbound

// little is by how much, as a part of its price, what a node holds may be worth more than it without being looked for.
const little = 2e-4

// wholePodProblem is a problem whose nodes hold whole pods.
type wholePodProblem struct {
	*solver
	fill     []float64   // by offering: no fill is worth more
	patience int         // steps of looking for one
	left     []float64   // by class: most pods that one holds
	every    []int32     // all offerings
	close    []int32     // offerings that came near to being worth their price, to be asked first
	work     int         // numbers it went through
	mosts    []float64   // see mostNow
	needs    [][]podNeed // by class: what a pod needs some of, see needsOf

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

func newWholePodProblem(s *solver, patience int) *wholePodProblem {
	return &wholePodProblem{solver: s, fill: make([]float64, len(s.Offerings)), patience: patience,
		needs: needsOf(s.Classes)}
}

// closeToPrice is the part of its price that the best fill of an offering must be worth for it to be asked again soon.
const closeToPrice = 0.95

// priceWholePods finds the best fill of every offering, or of every one that came close to its price when all were
// asked, at the filler's values and gives the master those that would pay at the pure ones. It returns how many did.
func (w *wholePodProblem) priceWholePods(pure []float64, all bool) (added int) {
	asked := w.close
	if all {
		w.close, asked = w.close[:0], w.everyOffering()
	}
	for _, i := range asked {
		o := &w.Offerings[i]
		if w.fill[i] = w.fillOf(o, int(i), o.Price); all && w.fill[i] > closeToPrice*o.Price {
			w.close = append(w.close, i)
		}
		w.work += 40*len(o.Holds) + 10*w.steps
		c, gain := column{cost: o.Price}, 0.0
		for j, n := range w.best {
			if k := w.items[j].class; n > 0 {
				c.class, c.amount = append(c.class, k), append(c.amount, float64(n))
				gain += float64(n) * pure[k]
			}
		}
		if gain > o.Price*(1+spill) {
			w.m.addColumn(c)
			added++
		}
	}
	return added
}

// everyOffering lists the indexes of all offerings.
func (w *wholePodProblem) everyOffering() []int32 {
	for i := len(w.every); i < len(w.Offerings); i++ {
		w.every = append(w.every, int32(i))
	}
	return w.every
}

// leastBetter is by how many times a fill is worth more than another to be looked for.
const leastBetter = 1 + tolerance

// fillOf looks for the fill of whole pods that is worth most, if one is worth more than so much and a little, by
// depth-first search under the prices of room that the best fill of fractions has. It returns a bound of what any fill
// is worth. Where what was known before proves that a fill is worth much less, it looks no closer: offerings that come
// close to their price are asked again soon, so the bound has to tell them from others.
func (w *wholePodProblem) fillOf(o *NodeOffering, at int, least float64) float64 {
	w.items, w.best, w.most, w.steps = w.items[:0], w.best[:0], least*(1+little), 0
	mosts := w.mostNow(o, at)
	if w.prices[at] != nil { // what proved it often still proves it
		if upper := w.filler.UpperBound(o.Holds, mosts, o.Room, w.prices[at]); upper <= closeToPrice*least {
			return upper
		}
	}
	upper := w.filler.Fill(o.Holds, mosts, o.Room, &w.basis[at])
	w.prices[at] = append(w.prices[at][:0], w.filler.Price...)
	if upper <= w.most {
		return upper
	}
	w.room, w.places = append(w.room[:0], o.Room...), append(w.places[:0], w.Caps...)
	w.collectItems(o.Holds, mosts)
	w.tryCounts(0, 0, w.roomWorth())
	if w.steps > w.patience {
		return upper
	}
	return min(upper, w.most*leastBetter)
}
