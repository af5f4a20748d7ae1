package cover

import (
	"math"

	"joiner.sh/pkg/model/rounding"
)

// mostPivots bounds the steps of one fill. A fill that is cut short still gives a valid upper bound.
const mostPivots = 60

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
		if p := b.rows[r]; x < -rounding.Speck || p >= 0 && x > most[p]+rounding.Speck {
			// there is less now: begin with nothing
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
		case w > rounding.Error:
			if t := max(0, s.has[r]) / w; t < length {
				length, leave, toUpper = t, r, false
			}
		case w < -rounding.Error && p >= 0:
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
	best := rounding.Error
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
			d -= prices[row] * s.ItemColumn(item, row)
		}
		if d > 0 {
			sum += d * most[i]
		}
	}
	return sum
}
