package lowerbound

import "math"

// stepsPerRow caps the steps of an improvement for each row. Five times as many cost the workloads of the bench 0.6 %
// more.
const stepsPerRow = 12

// improveBasis takes columns into the basis while that lowers the cost.
func (m *masterProblem) improveBasis() {
	for left := stepsPerRow * m.rowCount(); left > 0; left-- {
		enter := m.pricing.noteBestColumns(m)
		for range maxNotedColumns {
			if enter < 0 {
				break
			}
			if !m.pivotColumn(enter) {
				return
			}
			left--
			enter = m.pricing.bestNotedColumn(m)
		}
		if len(m.pricing.noted) > 0 {
			continue
		}
		for r, y := range m.prices {
			if -y > tolerance {
				enter = int32(-1 - r)
				break
			}
		}
		if enter == math.MinInt32 || !m.pivotColumn(enter) {
			return
		}
	}
}

// dropColumns drops the columns that cost much more than what they hold is worth, exchanges that turned out wrong among
// them, and gives the other exchanges a small price, no two the same, so that there are few ties between columns.
func (m *masterProblem) dropColumns() {
	for j := range m.columns {
		if c := &m.columns[j]; c.exchanges() && !c.wrong {
			c.cost = slight * m.prices[m.row[c.class[len(c.class)-1]]] * unlike(j)
		}
	}
	m.keepColumns(kept)
}

// keepColumns drops the columns that cost so much more than what they hold is worth, as a part of it.
func (m *masterProblem) keepColumns(more float64) {
	var columns []column
	var inside []bool
	at := make([]int32, len(m.columns))
	alone := make([]bool, len(m.columns))
	for _, j := range m.alone {
		if j >= 0 {
			alone[j] = true
		}
	}
	for j, c := range m.columns {
		mayGo := !alone[j] && !m.inside[j] && (!c.exchanges() || c.wrong) && !c.limited
		if mayGo && m.reducedCost(int32(j)) > more*c.cost {
			continue
		}
		at[j] = int32(len(columns))
		columns, inside = append(columns, c), append(inside, m.inside[j])
	}
	for r, j := range m.alone {
		if j >= 0 {
			m.alone[r] = at[j]
		}
	}
	m.columns, m.inside = columns, inside
	for r, j := range m.basic {
		if j >= 0 {
			m.basic[r] = at[j]
		}
	}
	m.computePrices()
}
