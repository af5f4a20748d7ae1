package lowerbound

import (
	"cmp"
	"math"
	"slices"
)

// givenAtOnce is the part of the offers that get their fills before what is left is priced anew.
const givenAtOnce = 0.5

// fillGiver gives offers with a limit what they hold in a fleet of about the least price, those first whose fill leaves
// no doubt. In between it solves the problem of what is left, so that later offers make up for what whole fills of
// earlier ones have too much or too little of.
type fillGiver struct {
	*limitedProblem
	all    []int         // by limited offer of the master problem: its index
	unheld []float64     // by class: pods that nothing holds yet
	out    []LimitedFill // by offer
	most   int           // work up to which it prices anew what is left

	made   [][]int32 // by class: the choices by which other pods are of it
	chosen [][]int   // see GivenFills
}

// GivenFills is what offers with a limit hold in a fleet that costs about Least.
type GivenFills struct {
	Fills  []LimitedFill // by offer
	Chosen [][]int       // by class that is any of some: of which of those how many of the pods are that have a place
	Work   int           // that it took
}

// GiveFills tells what the offers with a limit hold. After so much work it gives those that have no fill yet what they
// hold in the fleet as it is. It may buy new nodes first that are nearly whole in the fleet, so that offers make up for
// what whole ones have too much or too little of; else new nodes have to hold what whole fills leave.
func (b *RaisedBound) GiveFills(most int, buyFirst bool) GivenFills {
	g := b.problem.clone()
	f := &fillGiver{limitedProblem: g, all: b.problem.limited, out: make([]LimitedFill, len(g.Offers)),
		most: b.Work + most}
	for _, c := range g.Classes {
		f.unheld = append(f.unheld, c.Count)
	}
	f.noteChoices()
	g.left, g.patience = make([]float64, len(f.unheld)), quickFills
	for buyFirst && f.buyNodes() && !f.isSpent() {
		f.solveLeft()
	}
	for f.giveSomeFills() {
		f.solveLeft()
	}
	return GivenFills{f.out, f.chosen, g.work + g.m.work - b.Work}
}

// clone is a copy of which columns and demand may change.
func (g *limitedProblem) clone() *limitedProblem {
	whole, s, m, filler := *g.wholePodProblem, *g.solver, *g.m, *g.filler
	filler.Value = slices.Clone(filler.Value)
	m.columns, m.inside, m.alone = slices.Clone(m.columns), slices.Clone(m.inside), slices.Clone(m.alone)
	m.basic, m.inverse, m.demand = slices.Clone(m.basic), slices.Clone(m.inverse), slices.Clone(m.demand)
	m.has, m.prices = slices.Clone(m.has), slices.Clone(m.prices)
	m.keys.limited, m.keys.touched = slices.Clone(m.keys.limited), slices.Clone(m.keys.touched)
	m.pricing.gaining = nil
	s.m, s.filler = &m, &filler
	whole.solver, whole.fill = &s, slices.Clone(whole.fill)
	return &limitedProblem{&whole, slices.Clone(g.limited), g.at, g.choices}
}

// halfNode is the least part of a node that is bought as a whole one before offers get their fills.
const halfNode = 0.5

// buyNodes buys the new nodes of which the fleet has nearly whole ones, or else the one of which it has most; false
// when that is less than half of one.
func (f *fillGiver) buyNodes() bool {
	bought, best, most := false, int32(-1), halfNode
	for r, j := range f.m.basic {
		if j < 0 || f.m.columns[j].cost == 0 {
			continue
		}
		has := f.m.has[r]
		if n := math.Floor(has + 1 - nearlyWhole); n >= 1 {
			f.takeNodes(j, n)
			bought = true
		} else if has > most {
			best, most = j, has
		}
	}
	if !bought && best >= 0 {
		f.takeNodes(best, 1)
		bought = true
	}
	return bought
}

// takeNodes takes the pods on so many nodes of the column off those that are left.
func (f *fillGiver) takeNodes(column int32, nodes float64) {
	c := &f.m.columns[column]
	for i, k := range c.class {
		f.takePods(k, min(f.available(k), nodes*c.amount[i]))
	}
}

// likelyFill is the column that an offer mostly takes.
type likelyFill struct {
	offer  int
	column int32
	part   float64
}

// giveSomeFills gives the surest part of the offers their fills, or all once the work is done; false when no offer is
// left.
func (f *fillGiver) giveSomeFills() bool {
	list := f.likelyFills()
	slices.SortStableFunc(list, func(a, b likelyFill) int {
		return cmp.Compare(math.Round(b.part*1e6), math.Round(a.part*1e6))
	})
	now := len(list)
	if !f.isSpent() {
		now = int(math.Ceil(givenAtOnce * float64(now)))
	}
	for _, x := range list[:now] {
		c := &f.m.columns[x.column]
		fill := f.whatIsLeft(x.offer, c)
		f.out[x.offer] = fill
		for j, k := range fill.Class {
			f.takePods(k, f.Offers[x.offer].Limit*float64(fill.Amount[j]))
		}
	}
	f.limited = f.limited[:0]
	for _, x := range list[now:] {
		f.limited = append(f.limited, x.offer)
	}
	slices.Sort(f.limited)
	return len(f.limited) > 0
}

// likelyFills are the columns that the offers mostly take.
func (f *fillGiver) likelyFills() []likelyFill {
	out := make([]likelyFill, 0, len(f.limited))
	place := map[int32]int{}
	for _, i := range f.limited {
		o := &f.m.keys.limited[f.at[i]]
		place[f.at[i]] = len(out)
		out = append(out, likelyFill{i, o.key, o.has / o.limit})
	}
	for r, j := range f.m.basic {
		if j < 0 || f.m.columns[j].of == 0 {
			continue
		}
		of := f.m.columns[j].of - 1
		part := f.m.has[r] / f.m.keys.limited[of].limit
		if p, ok := place[of]; ok && part > out[p].part {
			out[p].column, out[p].part = j, part
		}
	}
	return out
}

// whatIsLeft is the fill of the offer without pods of which none are left.
func (f *fillGiver) whatIsLeft(offer int, c *column) (out LimitedFill) {
	for j, k := range c.class {
		if n := min(int(c.amount[j]), int(f.available(k)/f.Offers[offer].Limit)); n > 0 {
			out.Class, out.Amount = append(out.Class, k), append(out.Amount, n)
		}
	}
	return out
}

// withWhatIsLeft is the column without pods of which none are left.
func (f *fillGiver) withWhatIsLeft(c column) column {
	fill := f.whatIsLeft(f.all[c.of-1], &c)
	c.class, c.amount = fill.Class, nil
	for _, n := range fill.Amount {
		c.amount = append(c.amount, float64(n))
	}
	return c
}

// solveLeft solves the problem of the offers and pods that are left.
func (f *fillGiver) solveLeft() {
	f.dropGiven()
	f.limitWork(f.most)
	for k := range f.unheld {
		f.left[k] = f.available(int32(k))
	}
	for r, k := range f.m.class {
		f.m.demand[r] = f.unheld[k] + unlike // never quite 0
	}
	f.m.perturbDemand()
	if !f.isSpent() && f.tryLeft() {
		f.m.improveBasis()
	}
}

// isSpent reports whether all the work is done that it may do.
func (f *fillGiver) isSpent() bool { return f.work+f.m.work > f.most }

// dropGiven drops the columns of offers that have their fills, and takes pods off others of which none are left.
func (f *fillGiver) dropGiven() {
	m := f.m
	stays := make([]bool, len(m.keys.limited))
	for _, i := range f.limited {
		stays[f.at[i]] = true
	}
	for i := len(f.all); i < len(stays); i++ {
		stays[i] = true // no offer, but how many pods are of a class
	}
	at := make([]int32, len(m.columns))
	var columns []column
	for j, c := range m.columns {
		at[j] = int32(len(columns))
		switch {
		case c.of == 0, len(c.class) == 0, int(c.of) > len(f.all):
			columns = append(columns, c)
		case stays[c.of-1]:
			columns = append(columns, f.withWhatIsLeft(c))
		}
	}
	for r, j := range m.alone {
		if j >= 0 {
			m.alone[r] = at[j]
		}
	}
	for i := range m.keys.limited {
		o := &m.keys.limited[i]
		if o.key, o.empty = at[o.key], at[o.empty]; !stays[i] {
			o.key = o.empty
		}
	}
	m.columns, m.inside, m.pricing.gaining = columns, make([]bool, len(columns)), nil
}

// tryLeft looks for better fills of the offers that are left; false when it finds none.
func (f *fillGiver) tryLeft() bool {
	pure, found := f.m.classValues(f.filler.Value), false
	for _, i := range f.limited {
		found = f.tryLimited(i, pure) || found
	}
	return found
}
