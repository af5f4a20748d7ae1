package lowerbound

import (
	"math"
	"slices"
)

const (
	// givenAtOnce is the part of a group's offers that get their fills before what is left is priced anew.
	givenAtOnce = 0.5
	// fillRounds is how often better fills of the others are looked for then.
	fillRounds = 2
)

// fillGiver gives offers with a limit what they hold in a fleet of about the least price, some of each group at a time.
// In between it solves the problem of what is left, so that later offers make up for what whole fills of earlier ones
// have too much or too little of.
type fillGiver struct {
	*limitGroups
	left []float64     // by class: pods that are left
	out  []LimitedFill // by offer
	most int           // work up to which it looks for better fills
}

// GiveFills tells by offer with a limit what it holds in a fleet that costs about Least, and how much work that took.
// After so much work it looks for no better fills.
func (b *RaisedBound) GiveFills(most int) ([]LimitedFill, int) {
	g := b.groups.clone()
	f := &fillGiver{limitGroups: g, out: make([]LimitedFill, len(g.Offers)), most: b.Work + most}
	for _, c := range g.Classes[:g.first] {
		f.left = append(f.left, c.Count)
	}
	g.left, g.patience = f.left, quickFills
	for f.giveSomeFills() {
		f.solveLeft()
	}
	return f.out, g.work + g.m.work - b.Work
}

// clone is a copy of which members, columns and demand may change.
func (g *limitGroups) clone() *limitGroups {
	whole, s, m, filler := *g.wholePodProblem, *g.solver, *g.m, *g.filler
	filler.Value = slices.Clone(filler.Value)
	m.columns, m.inside, m.alone = slices.Clip(m.columns), slices.Clone(m.inside), slices.Clone(m.alone)
	m.basic, m.inverse, m.demand = slices.Clone(m.basic), slices.Clone(m.inverse), slices.Clone(m.demand)
	m.has, m.prices = slices.Clone(m.has), slices.Clone(m.prices)
	s.m, s.filler = &m, &filler
	whole.solver, whole.fill = &s, slices.Clone(whole.fill)
	return &limitGroups{&whole, slices.Clone(g.members), g.first, slices.Clone(g.columns)}
}

// giveSomeFills gives a part of the offers of each group their fills; false when no offer is left.
func (f *fillGiver) giveSomeFills() bool {
	part := make([]float64, len(f.m.columns))
	for r, j := range f.m.basic {
		if j >= 0 {
			part[j] = max(0, f.m.has[r])
		}
	}
	again := false
	for n, offers := range f.members {
		var own []limitedColumn
		for _, c := range f.columns {
			if c.group == n && part[c.column] > 1e-6 {
				own = append(own, c)
			}
		}
		now := int(math.Ceil(givenAtOnce * float64(len(offers))))
		f.giveOf(own, part, offers[:now])
		f.members[n] = offers[now:]
		for j := range f.columns {
			if c := &f.columns[j]; c.group == n {
				c.fills = c.fills[now:]
			}
		}
		again = again || now < len(offers)
	}
	return again
}

// giveOf gives each of the first offers of a group the fill of the column that lacks most of its part by then.
func (f *fillGiver) giveOf(columns []limitedColumn, part []float64, offers []int) {
	given := make([]float64, len(columns))
	for at, i := range offers {
		best, most := -1, 1e-9
		for j, c := range columns {
			if lack := part[c.column]*float64(at+1) - given[j]; lack > most+1e-9 {
				best, most = j, lack
			}
		}
		if best < 0 {
			continue
		}
		given[best]++
		f.out[i] = f.whatIsLeft(i, columns[best].fills[at])
		for j, k := range f.out[i].Class {
			f.left[k] -= f.Offers[i].Limit * float64(f.out[i].Amount[j])
		}
	}
}

// whatIsLeft is the fill of the offer without pods of which none are left.
func (f *fillGiver) whatIsLeft(offer int, fill LimitedFill) (out LimitedFill) {
	for j, k := range fill.Class {
		if n := min(fill.Amount[j], int(f.left[k]/f.Offers[offer].Limit)); n > 0 {
			out.Class, out.Amount = append(out.Class, k), append(out.Amount, n)
		}
	}
	return out
}

// solveLeft solves the problem of the offers and pods that are left.
func (f *fillGiver) solveLeft() {
	known := f.columns
	f.columns = nil
	f.m.dropLimited()
	for _, c := range known {
		fills := make([]LimitedFill, len(c.fills))
		amounts := make([]float64, f.first)
		for at, i := range f.members[c.group] {
			fills[at] = f.whatIsLeft(i, c.fills[at])
			for j, k := range fills[at].Class {
				amounts[k] += f.Offers[i].Limit * float64(fills[at].Amount[j])
			}
		}
		f.addGroupColumn(c.group, amounts, fills)
	}
	for r, k := range f.m.class {
		if f.m.demand[r] = f.Classes[k].Count; k < f.first {
			f.m.demand[r] = f.left[k] + unlike // never quite 0
		}
	}
	f.m.perturbDemand()
	for range fillRounds {
		if f.work+f.m.work > f.most || !f.tryLeft() {
			return
		}
		f.m.improveBasis()
	}
}

// tryLeft looks for better fills in all groups; false when it finds none.
func (f *fillGiver) tryLeft() bool {
	pure, found := f.m.classValues(f.filler.Value), false
	for n, offers := range f.members {
		found = len(offers) > 0 && f.tryGroup(n, pure) || found
	}
	return found
}

// dropLimited drops the columns of offers with a limit. The basis has to be made anew then.
func (m *masterProblem) dropLimited() {
	var columns []column
	at := make([]int32, len(m.columns))
	for j, c := range m.columns {
		if at[j] = int32(len(columns)); !c.limited {
			columns = append(columns, c)
		}
	}
	for r, j := range m.alone {
		if j >= 0 {
			m.alone[r] = at[j]
		}
	}
	m.columns, m.inside = columns, make([]bool, len(columns))
}
