package cover

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

// Node is one node of a fleet with its pods.
type Node struct {
	Offer  int32 // index
	Class  []int32
	Amount []int // by position of Class: pods
}

// Fleet covers all classes with whole nodes of whole pods, cheaply where there are few of both: again and again it solves the relaxation in
// which nodes hold whole pods and only their number may be a fraction, buys the whole ones, or that which is nearest to one, and prices
// what is left anew. It proves nothing. It is nil when some class has no offer.
func Fleet(p Problem) []Node {
	d := &dive{Problem: p, left: make([]float64, len(p.Classes)), best: math.Inf(1)}
	for k, c := range p.Classes {
		d.left[k] = c.Count
	}
	for d.more() {
	}
	return d.fleet
}

// dive is a fleet in the making.
type dive struct {
	Problem
	left   []float64 // by class: pods without a node
	known  []column
	bought []Node
	spent  float64
	fleet  []Node  // the cheapest that was found
	best   float64 // what it costs
	dived  bool
}

// more buys some nodes; false when that was all, or cannot become the cheapest fleet.
func (d *dive) more() bool {
	if !slices.ContainsFunc(d.left, func(n float64) bool { return n > 0 }) {
		if d.spent < d.best {
			d.best, d.fleet = d.spent, d.bought
		}
		return false
	}
	d.last()
	s := newSolver(d.rest())
	for k, n := range d.left {
		if n > 0 && s.m.row[k] < 0 {
			return false // nobody sells what it needs
		}
	}
	w := &whole{solver: s, fill: make([]float64, len(d.Offers)), patience: fewFills}
	for _, c := range d.known {
		if s.holds(c) {
			s.m.add(c)
		}
	}
	rounds := moreRounds
	if !d.dived {
		rounds, d.dived = firstRounds, true
	}
	s.m.improve()
	for range rounds {
		if w.price(s.m.values(s.filler.Value)) == 0 {
			break
		}
		s.m.improve()
	}
	d.known = s.m.columns
	return d.spent+s.m.cost() < d.best && d.buy(s.m)
}

// rest is the problem of what is left.
func (d *dive) rest() Problem {
	out := d.Problem
	out.Classes = slices.Clone(d.Classes)
	for k := range out.Classes {
		c := &out.Classes[k]
		if c.Count = d.left[k]; c.Most == 0 || c.Most > c.Count {
			c.Most = max(1, c.Count)
		}
	}
	return out
}

// holds reports whether the column holds pods that are left, and no more.
func (s *solver) holds(c column) bool {
	for i, k := range c.class {
		if s.m.row[k] < 0 || c.amount[i] > s.Classes[k].Most {
			return false
		}
	}
	return true
}

// buy takes as many of the fleet's nodes as are whole, of that which is nearest to one if none is.
func (d *dive) buy(m *master) bool {
	nearest, most, some := -1, 0.0, false
	for r, j := range m.basic {
		if j < 0 {
			continue
		}
		if n := math.Floor(m.has[r] + 1e-6); n >= 1 {
			some = d.take(m.columns[j], int(n)) || some
		} else if m.has[r] > most {
			nearest, most = int(j), m.has[r]
		}
	}
	if !some && nearest >= 0 {
		some = d.take(m.columns[nearest], 1)
	}
	return some
}

// take buys so many nodes of the column, or as many as there are pods for.
func (d *dive) take(c column, times int) bool {
	bought := false
	for range times {
		x := Node{}
		for i, k := range c.class {
			if n := min(c.amount[i], d.left[k]); n > 0 {
				x.Class, x.Amount = append(x.Class, k), append(x.Amount, int(n))
			}
		}
		offer, ok := d.cheapest(x.Class, x.Amount)
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

// last looks for a single node that holds all that is left.
func (d *dive) last() {
	x := Node{}
	for k, n := range d.left {
		if n > 0 {
			x.Class, x.Amount = append(x.Class, int32(k)), append(x.Amount, int(n))
		}
	}
	if o, ok := d.cheapest(x.Class, x.Amount); ok && d.spent+d.Offers[o].Price < d.best {
		x.Offer = o
		d.best, d.fleet = d.spent+d.Offers[o].Price, append(slices.Clone(d.bought), x)
	}
}

// cheapest is the cheapest offer that holds so many pods of the classes, the first of several.
func (d *dive) cheapest(class []int32, amount []int) (at int32, ok bool) {
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
