package lowerbound

import "math"

const (
	// mostFills bounds the steps in which the best fill of whole pods is looked for on one node. One that is cut short
	// is worth what the best fill of fractions is, which is a valid bound too.
	mostFills = 200_000
	// little is by how much, as a part of its price, what a node holds may be worth more than it without being looked
	// for.
	little = 2e-4
	// wholeEnough is how near, relative to the bound, the fleet has to come that is made of fractions of such nodes.
	wholeEnough = 1e-3
)

// SolveWholePods prices the classes by nodes that hold whole pods, where Solve lets them hold fractions: a bound that
// is higher, the more so the larger pods are beside nodes, and takes longer. It does not make the problem smaller, so
// it is for some dozens of classes. The outcome has no Fill. Whatever stops it, the bound is valid.
func SolveWholePods(p CoverProblem) ClassPrices {
	s := newSolver(p)
	best := ClassPrices{Value: make([]float64, len(p.Classes)), Least: math.Inf(1)}
	if s.m.rowCount() == 0 {
		best.Least = 0
		return best
	}
	w := newWholePodProblem(s, mostFills)
	for mix := 0.0; best.Rounds < max(1, p.Rounds); {
		best.Rounds++
		s.m.improveBasis()
		best.Least = s.m.fleetCost()
		pure := s.m.classValues(s.filler.Value)
		for i := range s.filler.Value {
			s.filler.Value[i] = (1-mix)*s.filler.Value[i] + mix*best.Value[i]
		}
		added := w.priceWholePods(pure, true)
		w.scaleValues()
		if v := s.totalWorth(); v > best.Bound {
			best.Bound = v
			copy(best.Value, s.filler.Value)
		}
		switch {
		case best.Least-best.Bound <= wholeEnough*best.Bound, added == 0 && mix == 0:
			return best
		case added == 0:
			mix = 0 // the best prices so far held it back
		default:
			mix = calm
		}
	}
	return best
}

// wholePodProblem is a problem whose nodes hold whole pods.
type wholePodProblem struct {
	*solver
	fill     []float64     // by offer: no fill is worth more
	patience int           // steps of looking for one
	cut      int           // how often these were too few
	left     []float64     // by class: most pods that one holds, nil for no more than fit
	every    []int32       // all offers
	close    []int32       // offers that came near to being worth their price, to be asked first
	work     int           // numbers it went through
	mosts    []float64     // see mostNow
	last     []LimitedFill // by offer: the best fill when it was asked last
	place    []int32       // by class: its item and one, while a fill is looked for
	again    []int32       // by position in the last fill: how many may be there again
	needs    [][]podNeed   // by class: what a pod needs some of, see needsOf

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
	margin float64 // another fill is looked for only if it could be worth so many times as much
	steps  int
	glance bool // look no closer where what was known before proves that a fill is worth too little
	proven bool // that was so
}

func newWholePodProblem(s *solver, patience int) *wholePodProblem {
	return &wholePodProblem{solver: s, fill: make([]float64, len(s.Offers)), patience: patience,
		needs: needsOf(s.Classes)}
}

// closeToPrice is the part of its price that the best fill of an offer must be worth for it to be asked again soon.
const closeToPrice = 0.95

// priceWholePods finds the best fill of every offer, or of every one that came close to its price when all were asked,
// at the filler's values and gives the master those that would pay at the pure ones. It returns how many did.
func (w *wholePodProblem) priceWholePods(pure []float64, all bool) (added int) {
	asked := w.close
	if all {
		w.close, asked = w.close[:0], w.everyOffer()
	}
	for _, i := range asked {
		o := &w.Offers[i]
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
		if gain > o.Price*(1+1e-7) {
			w.m.addColumn(c)
			added++
		}
	}
	return added
}

// everyOffer lists the indexes of all offers.
func (w *wholePodProblem) everyOffer() []int32 {
	for i := len(w.every); i < len(w.Offers); i++ {
		w.every = append(w.every, int32(i))
	}
	return w.every
}

// scaleValues lowers all values alike until no offer can hold more worth than it costs.
func (w *wholePodProblem) scaleValues() {
	factor := 1.0
	for i, o := range w.Offers {
		if w.limit[i] < 0 && w.fill[i] > 0 {
			factor = min(factor, o.Price/w.fill[i])
		}
	}
	for k := range w.filler.Value {
		w.filler.Value[k] *= factor
	}
}

// fillOf looks for the fill of whole pods that is worth most, if one is worth more than so much and a little, by
// depth-first search under the prices of room that the best fill of fractions has. It returns a bound of what any fill
// is worth.
func (w *wholePodProblem) fillOf(o *NodeOffer, at int, least float64) float64 {
	w.items, w.best, w.most, w.steps, w.margin = w.items[:0], w.best[:0], least*(1+little), 0, 1+1e-9
	if least == 0 {
		w.margin = 1 + little
	}
	mosts := w.mostNow(o, at)
	if enough := w.glanceLimit(least); enough > 0 && w.prices[at] != nil { // what proved it often still proves it
		if upper := w.filler.UpperBound(o.Holds, mosts, o.Room, w.prices[at]); upper <= enough {
			w.proven = true
			return upper
		}
	}
	w.proven = false
	upper := w.filler.Fill(o.Holds, mosts, o.Room, &w.basis[at])
	w.prices[at] = append(w.prices[at][:0], w.filler.Price...)
	if upper <= w.most {
		return upper
	}
	w.room, w.places = append(w.room[:0], o.Room...), append(w.places[:0], w.Caps...)
	if w.closely() {
		last := w.lastWorth(at)
		w.collectItems(o.Holds, mosts, max(last, least)-upper)
		w.tryLast(at, last)
		w.tryCounts(0, 0, w.roomWorth())
		w.keepLast(at)
	} else {
		w.collectItems(o.Holds, mosts, math.Inf(-1))
		w.tryCounts(0, 0, w.roomWorth())
	}
	if w.steps > w.patience {
		w.cut++
		return upper
	}
	return min(upper, w.most*w.margin)
}

// glanceLimit is the worth of a fill up to which it is enough to bound it by the prices of another fill: the bound is a
// little higher then. A fill that has to be worth least is of no use below that. Offers that come close to it are asked
// again soon in a fleet in the making, so there the bound has to tell them from others.
func (w *wholePodProblem) glanceLimit(least float64) float64 {
	switch {
	case w.glance && least > 0:
		return w.most
	case w.left != nil:
		return closeToPrice * least
	}
	return 0
}

// closely reports whether the best fill has to be found or nearly so. A fleet in the making needs good ones only, and
// within few steps others are found without what was best for other counts.
func (w *wholePodProblem) closely() bool { return w.left == nil || w.glance }
