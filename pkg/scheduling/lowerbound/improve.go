package lowerbound

import (
	"math"
	"slices"
)

// mostHopeful is how many columns are looked at again and again before all are.
const mostHopeful = 8

// improveBasis takes columns into the basis while that lowers the cost.
func (m *masterProblem) improveBasis() {
	for left := 12*m.rowCount() + 100; left > 0; left-- {
		enter := m.hopefulOnes()
		for range mostHopeful {
			if enter < 0 {
				break
			}
			if !m.pivotColumn(enter) {
				return
			}
			left--
			enter = m.bestHopeful()
		}
		if len(m.hopeful) > 0 {
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
// which costs nothing, as a part of what it takes the place of.
func (m *masterProblem) relativeGain(j int32) float64 {
	c := &m.columns[j]
	worth := 0.0
	for i, k := range c.class {
		worth += m.prices[m.row[k]] * c.amount[i]
	}
	if c.cost == 0 {
		return worth / max(1e-12, m.prices[m.row[c.class[len(c.class)-1]]])
	}
	return (worth - c.cost) / c.cost
}

// hopefulOnes notes the columns that gain most, and returns the best of them, math.MinInt32 for none.
func (m *masterProblem) hopefulOnes() int32 {
	m.hopeful = m.hopeful[:0]
	m.gains = m.gains[:0]
	for j := range m.columns {
		if m.inside[j] {
			continue
		}
		g := m.relativeGain(int32(j))
		if n := len(m.gains); g <= 1e-9 || n == mostHopeful && g <= m.gains[n-1] {
			continue
		}
		at := len(m.gains)
		for at > 0 && m.gains[at-1] < g {
			at--
		}
		if len(m.gains) == mostHopeful {
			m.gains, m.hopeful = m.gains[:mostHopeful-1], m.hopeful[:mostHopeful-1]
		}
		m.gains, m.hopeful = slices.Insert(m.gains, at, g), slices.Insert(m.hopeful, at, int32(j))
	}
	if len(m.hopeful) == 0 {
		return math.MinInt32
	}
	return m.hopeful[0]
}

// bestHopeful returns the noted column that gains most now, math.MinInt32 when none gains.
func (m *masterProblem) bestHopeful() int32 {
	enter, most := int32(math.MinInt32), 1e-9
	for _, j := range m.hopeful {
		if m.inside[j] {
			continue
		}
		if g := m.relativeGain(j); g > most {
			enter, most = j, g
		}
	}
	return enter
}
