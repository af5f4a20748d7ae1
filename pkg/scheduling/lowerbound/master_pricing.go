package lowerbound

import (
	"math"
	"slices"
)

// column is a node with a fill: the price of the node and how many pods of which classes it holds.
type column struct {
	cost    float64
	class   []int32
	amount  []float64
	spoilt  bool // it holds more pods than are left
	wrong   bool // it is an exchange that turned out wrong
	limited bool // there are only so many of the node; the class that stands for it comes first
}

// masterProblem is the linear program that covers all classes with the columns known so far, at the lowest cost: a
// revised simplex method with the inverse of the basis in full.
type masterProblem struct {
	row     []int32 // by class: its row, -1 for one without pods or offerings
	class   []int32 // by row
	demand  []float64
	columns []column
	alone   []int32 // by row: the column of the class alone, -1 for a limit
	basic   []int32 // by row: the basic column, or -1 - row for a surplus
	inside  []bool  // by column
	inverse []float64
	has     []float64 // by row: how much of its basic variable
	prices  []float64 // by row
	step    []float64
	first   []float64 // the demand in the beginning
	ratios  []enteringRatio
	filled  []int32   // the columns of the inverse in which the row that leaves is not 0
	pivots  []float64 // what is there
	norm    []float64 // by row: the sum of the squares of the inverse's row, while the dual simplex method runs
	dual    bool      // it does
	pricing pricing
	work    int // numbers it went through
	steps   int // that it took
	anew    int // of them those in which it began anew the last time
}

// enteringRatio is a variable that could enter, and what decides whether it does.
type enteringRatio struct {
	enter          int32
	pivot, reduced float64
}

// maxNotedColumns caps the columns that are looked at again and again before all are. One costs 0.1 % more in the mean
// of the families of infra/lab/ablation, and one half-empty cluster 3 %.
const maxNotedColumns = 8

// pricing chooses the column that enters the basis.
type pricing struct {
	worth []float64 // by class: its price, or what it has in a row of the inverse, while columns are looked at
	noted []int32   // columns that gained most when all were looked at
	gains []float64
}

// relativeGain returns the worth of what the column covers beyond its cost, as a part of its cost. For an exchange,
// which costs nothing, it is a part of what it takes the place of; for an existing node, of what it holds.
func (p *pricing) relativeGain(m *masterProblem, j int32) float64 {
	c := &m.columns[j]
	worth, amount := 0.0, c.amount[:len(c.class)]
	for i, k := range c.class {
		worth += p.worth[k] * amount[i]
	}
	if c.limited {
		return worth / max(leastDivisor, worth+p.worth[c.class[0]])
	}
	if c.exchanges() && c.cost == 0 {
		return worth / max(leastDivisor, p.worth[c.class[len(c.class)-1]])
	}
	return (worth - c.cost) / c.cost
}

// listByClass lists numbers of rows, prices mostly, by class, for all looks at columns until they change.
func (p *pricing) listByClass(m *masterProblem, byRow []float64) {
	if p.worth == nil {
		p.worth = make([]float64, len(m.row))
	}
	for k, r := range m.row {
		if r >= 0 {
			p.worth[k] = byRow[r]
		}
	}
}

// noteBestColumns notes the columns that gain most, and returns the best of them, math.MinInt32 for none.
func (p *pricing) noteBestColumns(m *masterProblem) int32 {
	p.noted, p.gains = p.noted[:0], p.gains[:0]
	p.listByClass(m, m.prices)
	for j := range m.columns {
		p.noteGain(m, int32(j))
	}
	if len(p.noted) == 0 {
		return math.MinInt32
	}
	return p.noted[0]
}

// noteGain notes the column if it is among those that gain most.
func (p *pricing) noteGain(m *masterProblem, j int32) {
	if m.inside[j] {
		return
	}
	m.work += len(m.columns[j].class)
	g := p.relativeGain(m, j)
	if n := len(p.gains); g <= tolerance || n == maxNotedColumns && g <= p.gains[n-1] {
		return
	}
	at := len(p.gains)
	for at > 0 && p.gains[at-1] < g {
		at--
	}
	if len(p.gains) == maxNotedColumns {
		p.gains, p.noted = p.gains[:maxNotedColumns-1], p.noted[:maxNotedColumns-1]
	}
	p.gains, p.noted = slices.Insert(p.gains, at, g), slices.Insert(p.noted, at, j)
}

// bestNotedColumn returns the noted column that gains most now, math.MinInt32 when none gains.
func (p *pricing) bestNotedColumn(m *masterProblem) int32 {
	enter, most := int32(math.MinInt32), tolerance
	p.listByClass(m, m.prices)
	for _, j := range p.noted {
		if m.inside[j] {
			continue
		}
		if g := p.relativeGain(m, j); g > most {
			enter, most = j, g
		}
	}
	return enter
}

// exchanges reports whether the column is no node but lets pods take the place of another, which comes last.
func (c *column) exchanges() bool { return c.amount[len(c.amount)-1] < 0 }
