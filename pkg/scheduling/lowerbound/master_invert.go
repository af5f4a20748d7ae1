package lowerbound

import "math"

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
	if m.norm[r] += more; m.norm[r] < 2*math.Abs(more) { // what is left may be rounding
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
