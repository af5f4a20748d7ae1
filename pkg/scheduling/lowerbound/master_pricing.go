package lowerbound

import (
	"math"
	"slices"
)

const (
	// maxNotedColumns is how many columns are looked at again and again before all are.
	maxNotedColumns = 8
	// stillGains is the part of the most that a column gained when all were looked at from which on it is enough to
	// look at those that gained then.
	stillGains = 0.3
)

// pricing chooses the column that enters the basis.
type pricing struct {
	// absolute says that what gains most enters, not what gains most for its cost: fewer steps where a column is
	// about one node.
	absolute bool
	worth    []float64 // by class: its price, or what it has in a row of the inverse, while columns are looked at
	look     int       // how often that was listed
	noted    []int32   // columns that gained most when all were looked at
	gains    []float64
	gaining  []int32 // all that gained then, beside limited offers
	gained   float64 // the most that one of them did
}

// relativeGain is how much more the column covers by worth than it costs, as a part of what it costs; an exchange,
// which costs nothing, as a part of what it takes the place of; a node that is there as a part of what it holds. Where
// gains count as they are it is no part.
func (p *pricing) relativeGain(m *masterProblem, j int32) float64 {
	c := &m.columns[j]
	worth, amount := 0.0, c.amount[:len(c.class)]
	for i, k := range c.class {
		worth += p.worth[k] * amount[i]
	}
	if p.absolute {
		return worth - c.cost - p.keyWorth(m, c)
	}
	if c.limited {
		return worth / max(1e-12, worth+p.worth[c.class[0]])
	}
	if c.exchanges() && c.cost == 0 {
		return worth / max(1e-12, p.worth[c.class[len(c.class)-1]])
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
	p.look++
}

// noteBestColumns notes the columns that gain most, and returns the best of them, math.MinInt32 for none. Beside
// limited offers it looks at those again that gained when all were looked at, as long as some gain enough.
func (p *pricing) noteBestColumns(m *masterProblem) int32 {
	p.noted, p.gains = p.noted[:0], p.gains[:0]
	p.listByClass(m, m.prices)
	for _, j := range p.gaining {
		p.noteGain(m, j)
	}
	if len(p.noted) == 0 || p.gains[0] < stillGains*p.gained {
		p.noteFromAll(m)
	}
	if len(p.noted) == 0 {
		return math.MinInt32
	}
	return p.noted[0]
}

// noteFromAll notes the columns that gain most, of all.
func (p *pricing) noteFromAll(m *masterProblem) {
	p.noted, p.gains, p.gaining = p.noted[:0], p.gains[:0], p.gaining[:0]
	for j := range m.columns {
		if p.noteGain(m, int32(j)) && len(m.keys.limited) > 0 {
			p.gaining = append(p.gaining, int32(j))
		}
	}
	if len(p.gains) > 0 {
		p.gained = p.gains[0]
	}
}

// noteGain notes the column if it is among those that gain most, and reports whether it gains.
func (p *pricing) noteGain(m *masterProblem, j int32) bool {
	if m.inside[j] {
		return false
	}
	m.work += 5 + len(m.columns[j].class)
	g := p.relativeGain(m, j)
	if n := len(p.gains); g <= 1e-9 || n == maxNotedColumns && g <= p.gains[n-1] {
		return g > 1e-9
	}
	at := len(p.gains)
	for at > 0 && p.gains[at-1] < g {
		at--
	}
	if len(p.gains) == maxNotedColumns {
		p.gains, p.noted = p.gains[:maxNotedColumns-1], p.noted[:maxNotedColumns-1]
	}
	p.gains, p.noted = slices.Insert(p.gains, at, g), slices.Insert(p.noted, at, j)
	return true
}

// bestNotedColumn returns the noted column that gains most now, math.MinInt32 when none gains.
func (p *pricing) bestNotedColumn(m *masterProblem) int32 {
	enter, most := int32(math.MinInt32), 1e-9
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

// keyWorth is what the key of the column's offer holds by the prices that are listed, remembered until others are.
func (p *pricing) keyWorth(m *masterProblem, c *column) float64 {
	if c.of == 0 {
		return 0
	}
	o := &m.keys.limited[c.of-1]
	if o.look != p.look {
		o.look, o.worth = p.look, m.keys.worthOf(m, c, func(k int32) float64 { return p.worth[k] })
	}
	return o.worth
}
