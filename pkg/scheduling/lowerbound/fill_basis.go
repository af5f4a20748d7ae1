package lowerbound

import "math"

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
		if !movePivot(m, s.inverse, c, n, leastDivisor) {
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
