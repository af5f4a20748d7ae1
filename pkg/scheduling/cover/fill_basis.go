package cover

import (
	"math"
	"slices"

	"joiner.sh/pkg/model/rounding"
)

// KnapsackSolver finds the best fill of one node, fractions allowed: a linear program with one row for each resource
// and each group that some item takes of, solved by the simplex method with bounded variables. Rows are few, so its
// inverse is small and made anew for each call.
type KnapsackSolver struct {
	Value []float64 // by item: what one is worth
	Need  []float64 // by item and resource: Need[i*dims+r]
	Group []int32   // by item: its group, -1 for none
	Dims  int       // resources
	Caps  []float64 // by group: how many of its items one node may hold

	// What the last call of Fill found.
	N     []float64 // by position in the list of items: how many the best fill holds
	Price []float64 // of one unit of each resource, then of one place in each group

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

// Basis remembers where the fill of a node ended, so that the next one with other values starts there.
type Basis struct {
	rows  []int32 // by row: the position of its basic item, or -1 - row for a slack
	upper []bool  // by position: the item is at its most
}

// startBasis begins with the basis, or with one in which a node holds nothing where that is none of these items.
func (s *KnapsackSolver) startBasis(b *Basis) {
	if len(b.rows) != len(s.rows) || len(b.upper) != len(s.values) {
		b.rows, b.upper = make([]int32, len(s.rows)), make([]bool, len(s.values))
		for r := range b.rows {
			b.rows[r] = int32(-1 - r)
		}
	}
	clear(s.basic)
	for _, p := range b.rows {
		if p >= 0 {
			s.basic[p] = true
		}
	}
}

// restart begins with nothing.
func (s *KnapsackSolver) restart(b *Basis) {
	*b = Basis{}
	s.startBasis(b)
	s.invertBasis(b)
}

// invertBasis makes the inverse of the basis by Gauss-Jordan elimination with row exchange; false when there is none.
func (s *KnapsackSolver) invertBasis(b *Basis) bool {
	n := len(b.rows)
	clear(s.inverse)
	all := true
	for r, p := range b.rows {
		s.inverse[r*n+r] = 1
		all = all && p == int32(-1-r)
	}
	if all {
		return true
	}
	m := s.matrix
	clear(m)
	for c, p := range b.rows {
		if p < 0 {
			m[int(-1-p)*n+c] = 1
			continue
		}
		for r, x := range s.takes[int(p)*n : int(p+1)*n] {
			m[r*n+c] = x
		}
	}
	for c := range n {
		if !movePivot(m, s.inverse, c, n, rounding.LeastDivisor) {
			return false
		}
		for r := range n {
			if x := m[r*n+c]; r != c && x != 0 {
				for k := range n {
					m[r*n+k] -= x * m[c*n+k]
					s.inverse[r*n+k] -= x * s.inverse[c*n+k]
				}
			}
		}
	}
	return true
}

// basicAmounts computes how much of each basic variable there is.
func (s *KnapsackSolver) basicAmounts(most []float64, b *Basis) {
	n := len(b.rows)
	copy(s.step, s.room)
	for i, up := range b.upper {
		if !up {
			continue
		}
		for r, x := range s.takes[i*n : (i+1)*n] {
			s.step[r] -= most[i] * x
		}
	}
	for r := range n {
		s.has[r] = 0
		for k, x := range s.inverse[r*n : r*n+n] {
			s.has[r] += x * s.step[k]
		}
	}
}

// exchangeBasis takes what enters into the basis in place of what is in the row.
func (s *KnapsackSolver) exchangeBasis(b *Basis, enter, leave int, toUpper bool) {
	n := len(b.rows)
	if p := b.rows[leave]; p >= 0 {
		s.basic[p] = false
		b.upper[p] = toUpper
	}
	b.rows[leave] = int32(enter)
	if enter >= 0 {
		s.basic[enter] = true
		b.upper[enter] = false
	}
	d := s.step[leave]
	row := s.inverse[leave*n : leave*n+n]
	for k := range row {
		row[k] /= d
	}
	for r := range n {
		if x := s.step[r]; r != leave && x != 0 {
			for k := range row {
				s.inverse[r*n+k] -= x * row[k]
			}
		}
	}
}

// movePivot exchanges the row that has the largest number in the column, from the diagonal on, for the one on the
// diagonal, and divides it by that number, in the matrix and in its inverse. It changes nothing and returns false where
// that number is less than least: the matrix has no inverse.
func movePivot(matrix, inverse []float64, column, n int, least float64) bool {
	best := column
	for r := column + 1; r < n; r++ {
		if math.Abs(matrix[r*n+column]) > math.Abs(matrix[best*n+column]) {
			best = r
		}
	}
	d := matrix[best*n+column]
	if math.Abs(d) < least {
		return false
	}
	for k := range n {
		i, j := best*n+k, column*n+k
		matrix[i], matrix[j] = matrix[j], matrix[i]/d
		inverse[i], inverse[j] = inverse[j], inverse[i]/d
	}
	return true
}

// NewFiller returns a filler for items with amounts of dims resources and the given groups.
func NewFiller(dims int, caps []float64) *KnapsackSolver {
	rows := dims + len(caps)
	part := func(n int) []float64 { return make([]float64, n) }
	return &KnapsackSolver{
		Caps: caps, Price: make([]float64, rows), Dims: dims, rows: make([]int, 0, rows),
		room: part(rows), prices: part(rows), has: part(rows), step: part(rows), column: part(rows),
		inverse: part(rows * rows), matrix: part(rows * rows),
	}
}

// readItems finds the rows that the items take of, and what of each.
func (s *KnapsackSolver) readItems(items []int32, room []float64) {
	s.rows = s.rows[:0]
	for r := range s.Price {
		if slices.ContainsFunc(items, func(item int32) bool { return s.ItemColumn(item, r) > 0 }) {
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
			s.takes[i*n+r] = s.ItemColumn(item, row)
		}
	}
	s.room, s.prices, s.has = s.room[:n], s.prices[:n], s.has[:n]
	s.step, s.column = s.step[:n], s.column[:n]
	s.inverse, s.matrix = s.inverse[:n*n], s.matrix[:n*n]
	for r, row := range s.rows {
		s.room[r] = s.rowCapacity(row, room)
	}
}

// ItemColumn returns how much of the resource, or of dims and the group, one item takes.
func (s *KnapsackSolver) ItemColumn(item int32, row int) float64 {
	if row < s.Dims {
		return s.Need[int(item)*s.Dims+row]
	}
	if int(s.Group[item]) == row-s.Dims {
		return 1
	}
	return 0
}

// rowCapacity returns the amount of the resource in room, or, for rows from dims on, the cap of the group.
func (s *KnapsackSolver) rowCapacity(row int, room []float64) float64 {
	if row < s.Dims {
		return room[row]
	}
	return s.Caps[row-s.Dims]
}
