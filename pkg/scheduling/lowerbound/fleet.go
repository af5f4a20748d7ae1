package lowerbound

import (
	"math"
	"slices"

	"joiner.sh/pkg/scheduling/cover"
)

// fillRounds caps the rounds in which fills are looked for before a choice. Half costs 0.04 % more in the mean of the
// families of infra/lab/ablation, double 0.19 % more.
const fillRounds = 40

// CoverByWholeNodes covers classes with whole nodes of whole pods, cheaply: again and again it solves the relaxation in
// which nodes hold whole pods and only their number may be a fraction, buys those that are whole or, if none is, that
// nearest to it, and prices what is left anew. It proves nothing. Classes that no offering holds are left out, and some
// of the others are when it has gone through so many numbers; no limit is meant by 0.
func CoverByWholeNodes(p cover.Problem, work int) []cover.FleetNode {
	d := newDive(problem(p), work)
	for d.buyMore() {
	}
	return d.fleet
}

// diveSearch is a fleet in the making.
type diveSearch struct {
	problem
	w      *wholePodProblem
	left   []float64 // by class: pods without a node
	limit  int       // of work
	bought []cover.FleetNode
	spent  float64
	fleet  []cover.FleetNode // the cheapest that was found
	best   float64           // what it costs
	dived  bool
	holds  [][]bool // by offering and class
}

func newDive(p problem, work int) *diveSearch {
	d := &diveSearch{problem: p, left: make([]float64, len(p.Classes)), best: math.Inf(1), limit: work}
	d.Classes = slices.Clone(p.Classes)
	for k := range d.Classes {
		c := &d.Classes[k]
		if c.Most == 0 || c.Most > c.Count {
			c.Most = max(1, c.Count)
		}
	}
	d.holds = make([][]bool, len(p.Offerings))
	for i, o := range p.Offerings {
		d.holds[i] = make([]bool, len(p.Classes))
		for _, k := range o.Holds {
			d.holds[i][k] = true
		}
	}
	s := newSolver(d.problem)
	d.w = newWholePodProblem(s)
	d.w.left = d.left
	for k, c := range p.Classes {
		if s.m.row[k] >= 0 {
			d.left[k] = c.Count
		}
	}
	return d
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
	s := d.w.solver
	if d.dived {
		d.demandLeft()
	}
	d.dived = true
	d.findNodes()
	s.m.keepColumns(kept)
	if d.usedUp() {
		d.fleet = d.bought // what is left is for others
		return false
	}
	return d.spent+s.m.fleetCost() < d.best && d.buyWholeNodes(s.m)
}

// findNodes finds nodes for the master problem.
func (d *diveSearch) findNodes() {
	m := d.w.m
	m.improveBasis()
	for range fillRounds {
		if d.usedUp() || d.w.priceWholePods(m.classValues(d.w.filler.Value)) == 0 {
			return
		}
		m.improveBasis()
	}
}

// usedUp reports whether it has done all the work that it may.
func (d *diveSearch) usedUp() bool { return d.limit > 0 && d.w.m.work+d.w.work > d.limit }

// demandLeft makes the master problem that of what is left: nodes that would hold more than that cost so much that none
// is bought.
func (d *diveSearch) demandLeft() {
	m := d.w.m
	m.demandExactly(d.left)
	for j := range m.columns {
		c := &m.columns[j]
		for i, k := range c.class {
			if c.amount[i] > d.left[k] && !c.spoilt {
				c.cost, c.spoilt = 2*c.cost, true
				if len(c.class) == 1 && d.left[k] > 0 {
					if o, ok := d.cheapestFor([]int32{k}, []int{int(d.left[k])}); ok {
						m.addColumn(column{cost: d.Offerings[o].Price, class: []int32{k}, amount: []float64{d.left[k]}})
					}
				}
				break
			}
		}
	}
	m.computePrices()
}

// buyWholeNodes takes as many of the fleet's nodes as are whole or, if none is, that which is nearest to it.
func (d *diveSearch) buyWholeNodes(m *masterProblem) bool {
	some, next, most := false, int32(-1), speck
	for r, j := range m.basic {
		if j < 0 {
			continue
		}
		switch n := math.Floor(m.has[r] + speck); {
		case n >= 1:
			some = d.buyColumn(m.columns[j], int(n)) || some
		case m.has[r] > most+speck || m.has[r] > most-speck && j < next:
			next, most = j, m.has[r]
		}
	}
	return some || next >= 0 && d.buyColumn(m.columns[next], 1)
}

// buyColumn buys so many nodes of the column, or as many as there are pods for.
func (d *diveSearch) buyColumn(c column, times int) bool {
	bought := false
	for range times {
		x := cover.FleetNode{}
		for i, k := range c.class {
			if n := min(c.amount[i], d.left[k]); n > 0 {
				x.Class, x.Amount = append(x.Class, k), append(x.Amount, int(n))
			}
		}
		offering, ok := d.cheapestFor(x.Class, x.Amount)
		if !ok {
			return bought
		}
		x.Offering = offering
		for i, k := range x.Class {
			d.left[k] -= float64(x.Amount[i])
		}
		d.bought, d.spent, bought = append(d.bought, x), d.spent+d.Offerings[offering].Price, true
	}
	return bought
}

// findLastNode looks for a single node that holds all that is left.
func (d *diveSearch) findLastNode() {
	x := cover.FleetNode{}
	for k, n := range d.left {
		if n > 0 {
			x.Class, x.Amount = append(x.Class, int32(k)), append(x.Amount, int(n))
		}
	}
	if o, ok := d.cheapestFor(x.Class, x.Amount); ok && d.spent+d.Offerings[o].Price < d.best {
		x.Offering = o
		d.best, d.fleet = d.spent+d.Offerings[o].Price, append(slices.Clone(d.bought), x)
	}
}

// cheapestFor is the cheapest offering that holds so many pods of the classes, the first of several.
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
	for i := range d.Offerings {
		o := &d.Offerings[i]
		if ok && o.Price >= d.Offerings[at].Price {
			continue
		}
		room := true
		for r, x := range need {
			room = room && x <= o.Room[r]+tolerance
		}
		if room && !slices.ContainsFunc(class, func(k int32) bool { return !d.holds[i][k] }) {
			at, ok = int32(i), true
		}
	}
	return at, ok
}
