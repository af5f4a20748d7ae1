package lowerbound

import (
	"math"
	"slices"
)

// maxNotedColumns is how many columns are looked at again and again before all are.
const maxNotedColumns = 8

// improveBasis takes columns into the basis while that lowers the cost.
func (m *masterProblem) improveBasis() {
	for left := 12*m.rowCount() + 100; left > 0; left-- {
		enter := m.noteBestColumns()
		for range maxNotedColumns {
			if enter < 0 {
				break
			}
			if !m.pivotColumn(enter) {
				return
			}
			left--
			enter = m.bestNotedColumn()
		}
		if len(m.noted) > 0 {
			continue
		}
		for r, y := range m.prices {
			if -y > 1e-9 {
				enter = int32(-1 - r)
				break
			}
		}
		if enter == math.MinInt32 || !m.pivotColumn(enter) {
			return
		}
	}
}

// relativeGain is how much more the column covers by worth than it costs, as a part of what it costs; an exchange,
// which costs nothing, as a part of what it takes the place of; a node that is there as a part of what it holds. Where
// gains count as they are it is no part.
func (m *masterProblem) relativeGain(j int32) float64 {
	c := &m.columns[j]
	worth, amount := 0.0, c.amount[:len(c.class)]
	for i, k := range c.class {
		worth += m.worth[k] * amount[i]
	}
	if m.absolute {
		return worth - c.cost
	}
	if c.limited {
		return worth / max(1e-12, worth+m.worth[c.class[0]])
	}
	if c.exchanges() && c.cost == 0 {
		return worth / max(1e-12, m.worth[c.class[len(c.class)-1]])
	}
	return (worth - c.cost) / c.cost
}

// listByClass lists numbers of rows, prices mostly, by class, for all looks at columns until they change.
func (m *masterProblem) listByClass(byRow []float64) {
	if m.worth == nil {
		m.worth = make([]float64, len(m.row))
	}
	for k, r := range m.row {
		if r >= 0 {
			m.worth[k] = byRow[r]
		}
	}
}

// noteBestColumns notes the columns that gain most, and returns the best of them, math.MinInt32 for none.
func (m *masterProblem) noteBestColumns() int32 {
	m.noted = m.noted[:0]
	m.gains = m.gains[:0]
	m.listByClass(m.prices)
	for j := range m.columns {
		if m.inside[j] {
			continue
		}
		m.work += 5 + len(m.columns[j].class)
		g := m.relativeGain(int32(j))
		if n := len(m.gains); g <= 1e-9 || n == maxNotedColumns && g <= m.gains[n-1] {
			continue
		}
		at := len(m.gains)
		for at > 0 && m.gains[at-1] < g {
			at--
		}
		if len(m.gains) == maxNotedColumns {
			m.gains, m.noted = m.gains[:maxNotedColumns-1], m.noted[:maxNotedColumns-1]
		}
		m.gains, m.noted = slices.Insert(m.gains, at, g), slices.Insert(m.noted, at, int32(j))
	}
	if len(m.noted) == 0 {
		return math.MinInt32
	}
	return m.noted[0]
}

// bestNotedColumn returns the noted column that gains most now, math.MinInt32 when none gains.
func (m *masterProblem) bestNotedColumn() int32 {
	enter, most := int32(math.MinInt32), 1e-9
	m.listByClass(m.prices)
	for _, j := range m.noted {
		if m.inside[j] {
			continue
		}
		if g := m.relativeGain(j); g > most {
			enter, most = j, g
		}
	}
	return enter
}

// dropColumns drops the columns that cost much more than what they hold is worth, exchanges that turned out wrong among
// them, and gives the other exchanges a small price, no two the same, so that there are few ties between columns.
func (m *masterProblem) dropColumns() {
	for j := range m.columns {
		if c := &m.columns[j]; c.exchanges() && !c.wrong {
			c.cost = 1e-3 * m.prices[m.row[c.class[len(c.class)-1]]] * (1 + float64(j%101)/101)
		}
	}
	m.keepColumns(0.02)
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
