package lowerbound

import (
	"math"
	"slices"

	"joiner.sh/pkg/model/rounding"
)

// What is taken for rounding in numbers of about 1: of digits of a float64 sixteen are right, of which sums of some
// hundred products lose some.
const (
	// tolerance is for a gain, or for an amount that was computed at once.
	tolerance = rounding.Error
	// speck is for what was computed by an inverse that pivots have changed many times, a part of a node or of a pod
	// that is next to nothing, and a demand or a price that must not be nothing.
	speck = rounding.Speck
	// leastDivisor is for a divisor, and for an entry of an inverse.
	leastDivisor = rounding.LeastDivisor
	// plenty is more pods than one node holds.
	plenty = 1 / speck
)

// mostPivots bounds the steps of one fill. A fill that is cut short still gives a valid upper bound.
const mostPivots = 60

// KnapsackSolver finds the best fill of one node, fractions allowed: a linear program with one row for each resource
// and each group that some item takes of, solved by the simplex method with bounded variables. Rows are few, so its
// inverse is small and made anew for each call.
type KnapsackSolver struct {
	Value []float64 // by item: what one is worth
	Need  []float64 // by item and resource: Need[i*dims+r]
	Group []int32   // by item: its group, -1 for none
	Caps  []float64 // by group: how many of its items one node may hold

	// What the last call of Fill found.
	N     []float64 // by position in the list of items: how many the best fill holds
	Price []float64 // of one unit of each resource, then of one place in each group

	dims  int
	basic []bool // by position

	// Of the call: rows are numbered one after the other.
	rows    []int     // the resource of each row, or dims and the group
	takes   []float64 // by position and row: how much one item takes
	values  []float64 // by position: what one is worth
	room    []float64 // by row
	prices  []float64 // by row
	inverse []float64
	has     []float64 // by row: how much of its basic variable
	step    []float64
	column  []float64 // of what enters, by row
	matrix  []float64 // while its inverse is made
}

// NewFiller returns a filler for items with amounts of dims resources and the given groups.
func NewFiller(dims int, caps []float64) *KnapsackSolver {
	rows := dims + len(caps)
	part := func(n int) []float64 { return make([]float64, n) }
	return &KnapsackSolver{
		Caps: caps, Price: make([]float64, rows), dims: dims, rows: make([]int, 0, rows),
		room: part(rows), prices: part(rows), has: part(rows), step: part(rows), column: part(rows),
		inverse: part(rows * rows), matrix: part(rows * rows),
	}
}

// Fill finds the best fill of room from the listed items, of which most[i] are to be had of items[i]. It returns an
// upper bound of its value that holds even where rounding or a step limit kept it from the best.
func (s *KnapsackSolver) Fill(items []int32, most, room []float64, b *Basis) float64 {
	s.readItems(items, room)
	s.startBasis(b)
	if !s.invertBasis(b) {
		s.restart(b)
	}
	s.basicAmounts(most, b)
	for r, x := range s.has {
		if p := b.rows[r]; x < -speck || p >= 0 && x > most[p]+speck { // there is less now: begin with nothing
			s.restart(b)
			s.basicAmounts(most, b)
			break
		}
	}
	for range mostPivots {
		if !s.pivotStep(most, b) {
			break
		}
	}
	for i := range items {
		s.N[i] = 0
		if b.upper[i] {
			s.N[i] = most[i]
		}
	}
	for r, p := range b.rows {
		if p >= 0 {
			s.N[p] = max(0, min(s.has[r], most[p]))
		}
	}
	return s.dualBound(most)
}

// readItems finds the rows that the items take of, and what of each.
func (s *KnapsackSolver) readItems(items []int32, room []float64) {
	s.rows = s.rows[:0]
	for r := range s.Price {
		if slices.ContainsFunc(items, func(item int32) bool { return s.itemColumn(item, r) > 0 }) {
			s.rows = append(s.rows, r)
		}
	}
	n := len(s.rows)
	if cap(s.N) < len(items) {
		s.N, s.basic, s.values = make([]float64, len(items)), make([]bool, len(items)), make([]float64, len(items))
	}
	s.N, s.basic, s.values = s.N[:len(items)], s.basic[:len(items)], s.values[:len(items)]
	if cap(s.takes) < n*len(items) {
		s.takes = make([]float64, n*len(items))
	}
	s.takes = s.takes[:n*len(items)]
	for i, item := range items {
		s.values[i] = s.Value[item]
		for r, row := range s.rows {
			s.takes[i*n+r] = s.itemColumn(item, row)
		}
	}
	s.room, s.prices, s.has = s.room[:n], s.prices[:n], s.has[:n]
	s.step, s.column = s.step[:n], s.column[:n]
	s.inverse, s.matrix = s.inverse[:n*n], s.matrix[:n*n]
	for r, row := range s.rows {
		s.room[r] = s.rowCapacity(row, room)
	}
}

// itemColumn returns how much of the resource, or of dims and the group, one item takes.
func (s *KnapsackSolver) itemColumn(item int32, row int) float64 {
	if row < s.dims {
		return s.Need[int(item)*s.dims+row]
	}
	if int(s.Group[item]) == row-s.dims {
		return 1
	}
	return 0
}

// rowCapacity returns the amount of the resource in room, or, for rows from dims on, the cap of the group.
func (s *KnapsackSolver) rowCapacity(row int, room []float64) float64 {
	if row < s.dims {
		return room[row]
	}
	return s.Caps[row-s.dims]
}

// pivotStep improves the fill by one step; false when it is the best.
func (s *KnapsackSolver) pivotStep(most []float64, b *Basis) bool {
	n := len(b.rows)
	clear(s.prices)
	for r, p := range b.rows {
		if p < 0 {
			continue
		}
		v := s.values[p]
		for k, x := range s.inverse[r*n : r*n+n] {
			s.prices[k] += v * x
		}
	}
	enter, sign := s.chooseEntering(most, b)
	if sign == 0 {
		return false
	}
	if enter >= 0 {
		copy(s.column, s.takes[enter*n:(enter+1)*n])
	} else {
		clear(s.column)
		s.column[-1-enter] = 1
	}
	for r := range n {
		s.step[r] = 0
		for k, x := range s.inverse[r*n : r*n+n] {
			s.step[r] += x * s.column[k]
		}
	}
	length, leave, toUpper := s.ratioTest(enter, sign, most, b)
	if leave < 0 && enter < 0 {
		return false // cannot be: slacks are bounded by the room
	}
	for r := range n {
		s.has[r] -= sign * length * s.step[r]
	}
	if leave < 0 { // it goes from one of its bounds to the other
		b.upper[enter] = sign > 0
		return true
	}
	s.exchangeBasis(b, enter, leave, toUpper)
	s.has[leave] = length
	if sign < 0 {
		s.has[leave] = most[enter] - length
	}
	return true
}

// ratioTest tells how far what enters can go until something is used up or at its most: the row of that, or -1 when it
// is what enters itself.
func (s *KnapsackSolver) ratioTest(enter int, sign float64, most []float64, b *Basis) (length float64, leave int,
	toUpper bool) {
	length, leave = math.Inf(1), -1
	if enter >= 0 {
		length = most[enter]
	}
	for r, p := range b.rows {
		switch w := sign * s.step[r]; {
		case w > tolerance:
			if t := max(0, s.has[r]) / w; t < length {
				length, leave, toUpper = t, r, false
			}
		case w < -tolerance && p >= 0:
			if t := max(0, most[p]-s.has[r]) / -w; t < length {
				length, leave, toUpper = t, r, true
			}
		}
	}
	return length, leave, toUpper
}

// chooseEntering chooses what comes into the basis: the item or slack with the greatest gain. sign is -1 for an item
// that is at its most and should become fewer, 0 when nothing gains.
func (s *KnapsackSolver) chooseEntering(most []float64, b *Basis) (enter int, sign float64) {
	best := tolerance
	for i := range s.values {
		if s.basic[i] || most[i] <= 0 {
			continue
		}
		d := s.reducedGain(i)
		switch {
		case !b.upper[i] && d > best:
			enter, sign, best = i, 1, d
		case b.upper[i] && -d > best:
			enter, sign, best = i, -1, -d
		}
	}
	for r, p := range s.prices {
		if -p > best {
			enter, sign, best = -1-r, 1, -p
		}
	}
	return enter, sign
}

// reducedGain returns the worth of one of the item at the position beyond the price of what it takes.
func (s *KnapsackSolver) reducedGain(i int) float64 {
	d := s.values[i]
	takes := s.takes[i*len(s.prices):][:len(s.prices)]
	for r, p := range s.prices {
		d -= p * takes[r]
	}
	return d
}

// dualBound returns the bound that the prices of rows prove. No fill is worth more than all that the node has at these
// prices, and what some items are worth beyond the price of what they take.
func (s *KnapsackSolver) dualBound(most []float64) float64 {
	sum := 0.0
	clear(s.Price)
	for r, p := range s.prices {
		s.prices[r] = max(0, p)
		s.Price[s.rows[r]] = s.prices[r]
		sum += s.prices[r] * s.room[r]
	}
	for i, n := range most {
		if d := s.reducedGain(i); d > 0 {
			sum += d * n
		}
	}
	return sum
}

// UpperBound is an upper bound of the value of any fill of room, as Fill returns it, that these prices of resources and
// places, none of them below 0, prove.
func (s *KnapsackSolver) UpperBound(items []int32, most, room, prices []float64) float64 {
	sum := 0.0
	s.rows = s.rows[:0] // those with a price
	for row, p := range prices {
		if p > 0 {
			s.rows = append(s.rows, row)
			sum += p * s.rowCapacity(row, room)
		}
	}
	for i, item := range items {
		d := s.Value[item]
		for _, row := range s.rows {
			d -= prices[row] * s.itemColumn(item, row)
		}
		if d > 0 {
			sum += d * most[i]
		}
	}
	return sum
}
