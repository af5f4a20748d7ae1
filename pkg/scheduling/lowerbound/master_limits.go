package lowerbound

import (
	"math"
	"slices"
)

// limitedOffer is what a master problem knows of an offer of which there are so many: all its columns together are
// taken that often, one that holds nothing among them. The basis always has one of them, the key, and tells others by
// how they differ from it (generalized upper bounds), so that there is no row for the offer.
type limitedOffer struct {
	limit float64
	empty int32   // the column that holds nothing
	key   int32   // column
	has   float64 // how often the key is taken
	step  float64 // how many of the key one of what enters uses up
	worth float64 // of what the key holds, at the last look at columns of the offer
	look  int     // which that was
	noted bool    // it is among those touched
}

// offerKeys are the limited offers of a master problem.
type offerKeys struct {
	limited []limitedOffer
	touched []int32   // limited offers whose keys what enters uses up
	rows    []int32   // in which the column that was looked at last differs from the key of its offer
	amounts []float64 // by how much
	rest    []float64 // by row: the demand that keys leave
}

// addLimited adds an offer of which there are so many, and the column that holds nothing.
func (m *masterProblem) addLimited(limit float64) {
	empty := int32(len(m.columns))
	m.keys.limited = append(m.keys.limited, limitedOffer{limit: limit, empty: empty, key: empty, has: limit})
	m.addColumn(column{of: int32(len(m.keys.limited))})
	m.inside[empty] = true
}

// worthOf is what the key of the column's offer holds, by what one pod of a class is worth; 0 for a node that can be
// bought.
func (o *offerKeys) worthOf(m *masterProblem, c *column, pod func(class int32) float64) (worth float64) {
	if c.of == 0 {
		return 0
	}
	key := &m.columns[o.limited[c.of-1].key]
	for i, k := range key.class {
		worth += pod(k) * key.amount[i]
	}
	return worth
}

// differences lists what the column holds more than the key of its offer, by row.
func (o *offerKeys) differences(m *masterProblem, c *column) {
	o.rows, o.amounts = o.rows[:0], o.amounts[:0]
	for i, k := range c.class {
		o.rows, o.amounts = append(o.rows, m.row[k]), append(o.amounts, c.amount[i])
	}
	if c.of == 0 {
		return
	}
	key := &m.columns[o.limited[c.of-1].key]
	for i, k := range key.class {
		o.rows, o.amounts = append(o.rows, m.row[k]), append(o.amounts, -key.amount[i])
	}
}

// steps computes how much of each key one of what enters uses up, and returns the key of which there is none first,
// if that is before the length given.
func (o *offerKeys) steps(m *masterProblem, enter int32, length float64) (leave int32, sooner float64) {
	for _, g := range o.touched {
		o.limited[g].step, o.limited[g].noted = 0, false
	}
	o.touched = o.touched[:0]
	note := func(g int32, step float64) {
		x := &o.limited[g]
		if !x.noted {
			o.touched, x.noted = append(o.touched, g), true
		}
		x.step += step
	}
	if enter >= 0 && m.columns[enter].of > 0 {
		note(m.columns[enter].of-1, 1)
	}
	for r, j := range m.basic {
		if j >= 0 && m.columns[j].of > 0 && m.step[r] != 0 {
			note(m.columns[j].of-1, -m.step[r])
		}
	}
	leave = -1
	for _, g := range o.touched {
		x := &o.limited[g]
		if x.step <= 1e-9 {
			continue
		}
		if t := max(0, x.has) / x.step; t < length {
			leave, length = g, t
		}
	}
	return leave, length
}

// take takes what so much of what enters uses up off the keys.
func (o *offerKeys) take(length float64) {
	for _, g := range o.touched {
		x := &o.limited[g]
		x.has -= length * x.step
	}
}

// exchangeKey takes what enters into the basis in place of the key of an offer.
func (m *masterProblem) exchangeKey(enter, offer int32, length float64) {
	o := &m.keys.limited[offer]
	at := slices.IndexFunc(m.basic, func(j int32) bool { return j >= 0 && m.columns[j].of == offer+1 })
	if at < 0 { // what enters is of the offer: it becomes the key, and nothing is told by how it differs from that
		for r := range m.has {
			m.has[r] -= length * m.step[r]
		}
		m.keys.take(length)
		m.inside[o.key], m.inside[enter] = false, true
		o.key, o.has = enter, length
		m.steps++
		return
	}
	m.swapKey(offer, at)
	m.basicSteps(enter)
	m.keys.steps(m, enter, math.Inf(1))
	m.exchangeBasic(enter, at, length)
}

// swapKey makes the basic column of the row the key of its offer, and what was the key basic there.
func (m *masterProblem) swapKey(offer int32, at int) {
	n, o := m.rowCount(), &m.keys.limited[offer]
	row := m.inverse[at*n : at*n+n]
	for r, j := range m.basic {
		if r != at && j >= 0 && m.columns[j].of == offer+1 {
			for k, x := range m.inverse[r*n : r*n+n] {
				row[k] += x
			}
		}
	}
	for k := range row {
		row[k] = -row[k]
	}
	m.basic[at], o.key = o.key, m.basic[at]
	m.has[at], o.has = o.has, m.has[at]
}

// demandBeside computes the demand that is left where each offer takes its key as often as it can, and has it do so.
func (o *offerKeys) demandBeside(m *masterProblem) {
	o.rest = append(o.rest[:0], m.demand...)
	for i := range o.limited {
		x := &o.limited[i]
		x.has = x.limit
		key := &m.columns[x.key]
		for j, k := range key.class {
			o.rest[m.row[k]] -= x.limit * key.amount[j]
		}
	}
}

// solveAmounts computes how much there is of each basic variable and of the keys, from the inverse.
func (m *masterProblem) solveAmounts() {
	m.keys.demandBeside(m)
	n := m.rowCount()
	for r := range n {
		m.has[r] = 0
		for k, x := range m.inverse[r*n : r*n+n] {
			m.has[r] += x * m.keys.rest[k]
		}
		if j := m.basic[r]; j >= 0 && m.columns[j].of > 0 {
			m.keys.limited[m.columns[j].of-1].has -= m.has[r]
		}
	}
}
