package lowerbound

import (
	"math"
	"slices"
)

const (
	// firstRounds and moreRounds are how often fills are looked for, in the beginning and after each choice.
	firstRounds, moreRounds = 40, 3
	// fewFills bounds the steps in which the best fill of whole pods is looked for where one that is good will do.
	fewFills = 2_000
)

// FleetNode is one node of a fleet with its pods.
type FleetNode struct {
	Offer  int32 // index
	Class  []int32
	Amount []int // by position of Class: pods
}

// CoverByWholeNodes covers all classes with whole nodes of whole pods, cheaply where there are few of both: again and
// again it solves the relaxation in which nodes hold whole pods and only their number may be a fraction, buys the whole
// ones, or that which is nearest to one, and prices what is left anew. It proves nothing. It is nil when some class has
// no offer.
func CoverByWholeNodes(p CoverProblem) []FleetNode {
	d := &diveSearch{CoverProblem: p, left: make([]float64, len(p.Classes)), best: math.Inf(1)}
	for k, c := range p.Classes {
		d.left[k] = c.Count
	}
	for d.buyMore() {
	}
	return d.fleet
}

// diveSearch is a fleet in the making.
type diveSearch struct {
	CoverProblem
	left   []float64 // by class: pods without a node
	known  []column
	bought []FleetNode
	spent  float64
	fleet  []FleetNode // the cheapest that was found
	best   float64     // what it costs
	dived  bool
}

// buyMore buys some nodes; false when that was all, or cannot become the cheapest fleet.
func (d *diveSearch) buyMore() bool {
	if !slices.ContainsFunc(d.left, func(n float64) bool { return n > 0 }) {
		if d.spent < d.best {
			d.best, d.fleet = d.spent, d.bought
		}
		return false
	}
	d.findLastNode()
	s := newSolver(d.remainingProblem())
	for k, n := range d.left {
		if n > 0 && s.m.row[k] < 0 {
			return false // nobody sells what it needs
		}
	}
	w := &wholePodProblem{solver: s, fill: make([]float64, len(d.Offers)), patience: fewFills}
	for _, c := range d.known {
		if s.columnFits(c) {
			s.m.addColumn(c)
		}
	}
	rounds := moreRounds
	if !d.dived {
		rounds, d.dived = firstRounds, true
	}
	s.m.improveBasis()
	for range rounds {
		if w.priceWholePods(s.m.classValues(s.filler.Value)) == 0 {
			break
		}
		s.m.improveBasis()
	}
	d.known = s.m.columns
	return d.spent+s.m.fleetCost() < d.best && d.buyWholeNodes(s.m)
}

// remainingProblem is the problem of what is left.
func (d *diveSearch) remainingProblem() CoverProblem {
	out := d.CoverProblem
	out.Classes = slices.Clone(d.Classes)
	for k := range out.Classes {
		c := &out.Classes[k]
		if c.Count = d.left[k]; c.Most == 0 || c.Most > c.Count {
			c.Most = max(1, c.Count)
		}
	}
	return out
}

// columnFits reports whether the column holds pods that are left, and no more.
func (s *solver) columnFits(c column) bool {
	for i, k := range c.class {
		if s.m.row[k] < 0 || c.amount[i] > s.Classes[k].Most {
			return false
		}
	}
	return true
}

// buyWholeNodes takes as many of the fleet's nodes as are whole, of that which is nearest to one if none is.
func (d *diveSearch) buyWholeNodes(m *masterProblem) bool {
	nearest, most, some := -1, 0.0, false
	for r, j := range m.basic {
		if j < 0 {
			continue
		}
		if n := math.Floor(m.has[r] + 1e-6); n >= 1 {
			some = d.buyColumn(m.columns[j], int(n)) || some
		} else if m.has[r] > most {
			nearest, most = int(j), m.has[r]
		}
	}
	if !some && nearest >= 0 {
		some = d.buyColumn(m.columns[nearest], 1)
	}
	return some
}

// buyColumn buys so many nodes of the column, or as many as there are pods for.
func (d *diveSearch) buyColumn(c column, times int) bool {
	bought := false
	for range times {
		x := FleetNode{}
		for i, k := range c.class {
			if n := min(c.amount[i], d.left[k]); n > 0 {
				x.Class, x.Amount = append(x.Class, k), append(x.Amount, int(n))
			}
		}
		offer, ok := d.cheapestFor(x.Class, x.Amount)
		if !ok {
			return bought
		}
		x.Offer = offer
		for i, k := range x.Class {
			d.left[k] -= float64(x.Amount[i])
		}
		d.bought, d.spent, bought = append(d.bought, x), d.spent+d.Offers[offer].Price, true
	}
	return bought
}

// findLastNode looks for a single node that holds all that is left.
func (d *diveSearch) findLastNode() {
	x := FleetNode{}
	for k, n := range d.left {
		if n > 0 {
			x.Class, x.Amount = append(x.Class, int32(k)), append(x.Amount, int(n))
		}
	}
	if o, ok := d.cheapestFor(x.Class, x.Amount); ok && d.spent+d.Offers[o].Price < d.best {
		x.Offer = o
		d.best, d.fleet = d.spent+d.Offers[o].Price, append(slices.Clone(d.bought), x)
	}
}

// cheapestFor is the cheapest offer that holds so many pods of the classes, the first of several.
func (d *diveSearch) cheapestFor(class []int32, amount []int) (at int32, ok bool) {
	if len(class) == 0 {
		return 0, false
	}
	need, places := make([]float64, len(d.Classes[0].Need)), make([]float64, len(d.Caps))
	for i, k := range class {
		c, n := &d.Classes[k], float64(amount[i])
		if c.Most > 0 && n > c.Most {
			return 0, false
		}
		for r, x := range c.Need {
			need[r] += n * x
		}
		if c.Group >= 0 {
			if places[c.Group] += n; places[c.Group] > d.Caps[c.Group] {
				return 0, false
			}
		}
	}
	for i := range d.Offers {
		o := &d.Offers[i]
		if ok && o.Price >= d.Offers[at].Price {
			continue
		}
		room := !slices.ContainsFunc(class, func(k int32) bool { return !slices.Contains(o.Holds, k) })
		for r, x := range need {
			room = room && x <= o.Room[r]+1e-9
		}
		if room {
			at, ok = int32(i), true
		}
	}
	return at, ok
}
