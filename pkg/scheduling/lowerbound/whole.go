package lowerbound

import (
	"cmp"
	"math"
	"slices"
)

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
	w := &wholePodProblem{solver: s, fill: make([]float64, len(p.Offers)), patience: mostFills}
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

	// Of the fill that is looked for.
	items  []nodeItem
	rest   []float64 // by item: what it and those after it may gain at most beside the worth of the room they take
	yield  []float64 // by item and resource: the most that it or one after it is worth for one unit
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

// nodeItem is a class that a node may hold.
type nodeItem struct {
	class int32
	value float64
	most  int32
	gain  float64 // its value less the worth of the room that one takes
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

// collectItems collects the classes of which a node may hold some: those of which one pod loses no more than so much
// against the best fill of fractions.
func (w *wholePodProblem) collectItems(holds []int32, mosts []float64, leastGain float64) {
	for j, k := range holds {
		v, n := w.filler.Value[k], mosts[j]
		if v <= 0 || n < 1 || w.m.row[k] < 0 {
			continue
		}
		gain := v
		for r := range w.filler.Price {
			gain -= w.filler.Price[r] * w.filler.itemColumn(k, r)
		}
		if gain >= leastGain-rounding {
			w.items = append(w.items, nodeItem{class: k, value: v, most: int32(min(n, 1e6)), gain: gain})
		}
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
	w.n, w.best = append(w.n[:0], make([]int32, n)...), append(w.best[:0], make([]int32, n)...)
}

// rounding is what gains may be wrong by, in USD per hour.
const rounding = 1e-9

// lastWorth is what the fill is worth now that was best when the offer was asked last, as far as it still may be.
func (w *wholePodProblem) lastWorth(at int) (worth float64) {
	if w.last == nil {
		w.last, w.place = make([]LimitedFill, len(w.Offers)), make([]int32, len(w.Classes))
	}
	last := &w.last[at]
	w.again = w.again[:0]
	for i, k := range last.Class {
		n := int32(last.Amount[i])
		if w.left != nil {
			n = min(n, int32(w.left[k]))
		}
		if v := w.filler.Value[k]; v > 0 {
			n = w.fitCount(&nodeItem{class: k, most: n})
			w.takeRoom(k, float64(n))
			worth += float64(n) * v
		} else {
			n = 0
		}
		w.again = append(w.again, n)
	}
	for i, k := range last.Class {
		w.takeRoom(k, -float64(w.again[i]))
	}
	return worth
}

// tryLast takes the fill that was best when the offer was asked last for the best so far, if it is worth enough.
func (w *wholePodProblem) tryLast(at int, worth float64) {
	if worth <= w.most {
		return
	}
	w.most = worth
	for j, it := range w.items {
		w.place[it.class] = int32(j + 1)
	}
	for i, k := range w.last[at].Class {
		if j := w.place[k] - 1; j >= 0 {
			w.best[j] = w.again[i]
		}
	}
	for _, it := range w.items {
		w.place[it.class] = 0
	}
}

// keepLast remembers the best fill of the offer, if one is worth enough.
func (w *wholePodProblem) keepLast(at int) {
	if !slices.ContainsFunc(w.best, func(n int32) bool { return n > 0 }) {
		return
	}
	last := &w.last[at]
	last.Class, last.Amount = last.Class[:0], last.Amount[:0]
	for j, n := range w.best {
		if n > 0 {
			last.Class, last.Amount = append(last.Class, w.items[j].class), append(last.Amount, int(n))
		}
	}
}

// mostNow is how many pods of each class that the offer holds one node may have.
func (w *wholePodProblem) mostNow(o *NodeOffer, at int) []float64 {
	most := w.solver.most[at]
	if w.left == nil {
		return most
	}
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
		if w.steps++; w.steps > w.patience {
			return
		}
		spare := room + w.rest[j] - w.most*w.margin // what may be lost of it to leave a fill that is worth enough
		if spare <= 0 || worth+w.bestYield(j) <= w.most*w.margin {
			return
		}
		if spare+it.gain <= 0 {
			continue
		}
		most := w.fitCount(it)
		if it.gain < 0 {
			most = min(most, int32(min(spare/-it.gain, 1e6)))
		}
		w.takeRoom(it.class, float64(most))
		for n := most; n > 0; n-- {
			w.n[j] = n
			w.tryCounts(j+1, worth+float64(n)*it.value, room+float64(n)*it.gain)
			w.takeRoom(it.class, -1)
		}
		w.n[j] = 0
	}
}

// roomWorth is what the room that is left is worth by its prices.
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
	worth, dims := math.Inf(1), w.filler.dims
	for r, x := range w.room {
		if yield := w.yield[j*dims+r]; yield*x < worth { // false where nothing is needed of the resource
			worth = yield * x
		}
	}
	return worth
}

// fitCount is how many more of the item the node can hold.
func (w *wholePodProblem) fitCount(it *nodeItem) int32 {
	n := float64(it.most)
	c := &w.Classes[it.class]
	room := w.room[:len(c.Need)]
	for r, x := range c.Need {
		if x > 0 {
			n = min(n, room[r]/x)
		}
	}
	n = math.Floor(n + 1e-9)
	if c.Group >= 0 {
		n = min(n, w.places[c.Group])
	}
	return int32(max(0, n))
}

// takeRoom takes room for so many pods of the class.
func (w *wholePodProblem) takeRoom(k int32, n float64) {
	c := &w.Classes[k]
	for r, x := range c.Need {
		w.room[r] -= n * x
	}
	if c.Group >= 0 {
		w.places[c.Group] -= n
	}
}
