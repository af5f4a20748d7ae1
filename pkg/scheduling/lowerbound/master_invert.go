package lowerbound

import "math"

// unlike is by how much, as a part of it, demand is changed so that no two rows need alike.
const unlike = 1e-3

// perturbDemand makes no two rows need alike, or the simplex would go round in circles, and begins anew.
func (m *masterProblem) perturbDemand() {
	for r := range m.demand {
		m.demand[r] *= 1 + unlike*float64(r*7919%1009)/1009
	}
	m.restartBasis()
}

// refactorBasis makes the inverse of the basis anew by Gauss-Jordan elimination, because steps have spoilt it a little.
// It begins anew where the basis has no inverse.
func (m *masterProblem) refactorBasis() {
	n := m.rowCount()
	if m.basis == nil {
		m.basis = make([]float64, n*n)
	}
	a := m.basis // by row of the problem and place in the basis
	clear(a)
	for at, j := range m.basic {
		if j < 0 {
			a[int(-1-j)*n+at] = -1
			continue
		}
		m.keys.differences(m, &m.columns[j])
		for i, r := range m.keys.rows {
			a[int(r)*n+at] += m.keys.amounts[i]
		}
	}
	clear(m.inverse)
	for r := range n {
		m.inverse[r*n+r] = 1
	}
	for at := range n {
		if !m.eliminateColumn(a, at, n) {
			m.restartBasis()
			return
		}
	}
	m.work += n * n * n / 2
	m.solveAmounts()
	m.computePrices()
}

// eliminateColumn makes a column of the matrix that of the identity, and does the same to the inverse; false where the
// matrix has none.
func (m *masterProblem) eliminateColumn(a []float64, at, n int) bool {
	if !movePivot(a, m.inverse, at, n, 1e-9) {
		return false
	}
	m.subtractFromOthers(m.inverse, a, at)
	m.subtractFromOthers(a, a, at)
	return true
}

// subtractFromOthers takes a row off all others, as many times as the matrix has there in the row's own column.
func (m *masterProblem) subtractFromOthers(from, a []float64, at int) {
	n := m.rowCount()
	row := from[at*n : at*n+n]
	m.filled = m.filled[:0] // most of the row is 0
	for k, x := range row {
		if x != 0 {
			m.filled = append(m.filled, int32(k))
		}
	}
	for r := range n {
		x := a[r*n+at]
		if r == at || x == 0 {
			continue
		}
		to := from[r*n : r*n+n]
		for _, k := range m.filled {
			to[k] -= x * row[k]
		}
	}
}

// subtractPivots takes x times the row that leaves off a row of the inverse.
func (m *masterProblem) subtractPivots(row, pivotRow []float64, x float64) {
	if 2*len(m.filled) < len(row) { // most rows of the inverse are mostly 0
		for i, k := range m.filled {
			row[k] -= x * m.pivots[i]
		}
		return
	}
	pivotRow = pivotRow[:len(row)]
	for k := range row {
		row[k] -= x * pivotRow[k]
	}
}

// subtractRow takes x times the row that leaves off a row of the inverse, and keeps its norm up to date.
func (m *masterProblem) subtractRow(r int, row []float64, x float64) {
	more := 0.0
	for i, k := range m.filled {
		old := row[k]
		v := old - x*m.pivots[i]
		row[k] = v
		more += v*v - old*old
	}
	if m.norm[r] += more; m.norm[r] < 10*math.Abs(more) { // what is left may be rounding
		m.norm[r] = squareMatrix(row)
	}
}

func squareMatrix(row []float64) float64 {
	sum := 0.0
	for _, v := range row {
		sum += v * v
	}
	return sum
}
