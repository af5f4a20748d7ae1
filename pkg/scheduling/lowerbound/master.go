package lowerbound

import (
	"math"

	"joiner.sh/pkg/scheduling/cover"
)

func newMaster(classes []cover.Class, first []column) *masterProblem {
	m := &masterProblem{row: make([]int32, len(classes))}
	for k, c := range classes {
		m.row[k] = -1
		if c.Count < 0 {
			m.row[k] = int32(len(m.class))
			m.basic, m.alone = append(m.basic, -1-m.row[k]), append(m.alone, -1)
			m.class, m.demand = append(m.class, int32(k)), append(m.demand, c.Count)
		}
		if c.Count > 0 && first[k].amount != nil {
			m.row[k] = int32(len(m.class))
			m.class = append(m.class, int32(k))
			m.demand = append(m.demand, c.Count)
			m.basic, m.alone = append(m.basic, int32(len(m.columns))), append(m.alone, int32(len(m.columns)))
			m.addColumn(first[k])
		}
	}
	n := len(m.class)
	m.inverse, m.has, m.prices, m.step = make([]float64, n*n), make([]float64, n), make([]float64, n),
		make([]float64, n)
	m.norm = make([]float64, n)
	m.startBasis()
	return m
}

// startBasis covers each row with its class alone.
func (m *masterProblem) startBasis() {
	clear(m.inverse)
	clear(m.inside)
	n := m.rowCount()
	for r, demand := range m.demand {
		j := m.alone[r]
		if j < 0 { // of a limit nothing is used
			m.basic[r] = int32(-1 - r)
			m.inverse[r*n+r], m.has[r], m.prices[r] = -1, -demand, 0
			continue
		}
		m.basic[r], m.inside[j] = j, true
		c := &m.columns[j]
		m.inverse[r*n+r] = 1 / c.amount[0]
		m.has[r], m.prices[r] = demand/c.amount[0], c.cost/c.amount[0]
	}
}

func (m *masterProblem) rowCount() int { return len(m.class) }

func (m *masterProblem) addColumn(c column) {
	m.columns = append(m.columns, c)
	m.inside = append(m.inside, false)
}

// fleetCost of the fleet.
func (m *masterProblem) fleetCost() float64 {
	sum := 0.0
	for r, j := range m.basic {
		if j >= 0 {
			sum += m.columns[j].cost * m.has[r]
		}
	}
	return sum
}

// classValues writes the price of one pod of each class into out, and returns a copy.
func (m *masterProblem) classValues(out []float64) []float64 {
	for k, r := range m.row {
		out[k] = 0
		if r >= 0 {
			out[k] = max(0, m.prices[r])
		}
	}
	return append([]float64(nil), out...)
}

// pivotColumn takes the column, or the surplus of a row, into the basis, in place of what it uses up first.
func (m *masterProblem) pivotColumn(enter int32) bool {
	m.basicSteps(enter)
	leave, length := -1, math.Inf(1)
	for r, w := range m.step {
		if w <= tolerance {
			continue
		}
		if t := max(0, m.has[r]) / w; t < length || t == length && w > m.step[leave] {
			leave, length = r, t
		}
	}
	if leave < 0 {
		return false
	}
	m.exchangeBasic(enter, leave, length)
	return true
}

// basicSteps computes how much of each basic variable one of what enters uses up.
func (m *masterProblem) basicSteps(enter int32) {
	n := m.rowCount()
	if enter < 0 {
		for r := range n {
			m.step[r] = -m.inverse[r*n+int(-1-enter)]
		}
		return
	}
	c := &m.columns[enter]
	for r := range n {
		row := m.inverse[r*n : r*n+n]
		x := 0.0
		for i, k := range c.class {
			x += row[m.row[k]] * c.amount[i]
		}
		m.step[r] = x
	}
}

// exchangeBasic makes what enters basic instead of the variable of the row, and brings inverse and prices up to date.
func (m *masterProblem) exchangeBasic(enter int32, leave int, length float64) {
	n := m.rowCount()
	for r := range n {
		m.has[r] -= length * m.step[r]
	}
	m.work += n * n / 2
	m.steps++
	m.has[leave] = length
	if j := m.basic[leave]; j >= 0 {
		m.inside[j] = false
	}
	gain := m.reducedCost(enter)
	m.basic[leave] = enter
	if enter >= 0 {
		m.inside[enter] = true
	}
	pivotRow := m.inverse[leave*n : leave*n+n]
	d := 1 / m.step[leave]
	sum := 0.0
	m.filled, m.pivots = m.filled[:0], m.pivots[:0]
	for k, p := range pivotRow {
		if p == 0 {
			continue
		}
		if p *= d; math.Abs(p) < leastDivisor {
			p = 0
		} else {
			m.filled, m.pivots = append(m.filled, int32(k)), append(m.pivots, p)
		}
		pivotRow[k] = p
		m.prices[k] += gain * p
		sum += p * p
	}
	m.norm[leave] = sum
	for r := range n {
		x := m.step[r]
		if r == leave || math.Abs(x) < leastDivisor {
			continue
		}
		row := m.inverse[r*n : r*n+n]
		if m.dual {
			m.subtractRow(r, row, x)
			continue
		}
		m.subtractPivots(row, pivotRow, x)
	}
}

// reducedCost returns the cost of one of the variable beyond the worth of what it covers.
func (m *masterProblem) reducedCost(enter int32) float64 {
	if enter < 0 {
		return m.prices[-1-enter]
	}
	c := &m.columns[enter]
	x := c.cost
	for i, k := range c.class {
		x -= m.prices[m.row[k]] * c.amount[i]
	}
	return x
}

// unlikely is the number of rows of a master problem that unlike tells apart, a prime. With 17 three of 5,000 random
// worlds place a pod less.
const unlikely = 101

// unlike is a number between 1 and 2 that rows side by side do not share: ties send the simplex method in circles.
func unlike(row int) float64 { return 1 + float64(row%unlikely)/unlikely }

// computePrices computes the prices from the inverse.
func (m *masterProblem) computePrices() {
	n := m.rowCount()
	clear(m.prices)
	for r, j := range m.basic {
		if j >= 0 && m.columns[j].cost != 0 {
			for k, x := range m.inverse[r*n : r*n+n] {
				m.prices[k] += m.columns[j].cost * x
			}
		}
	}
}

// dualRatio chooses what enters so that all prices stay right: of what would be wrong first, about equally, the
// variable with the largest pivot, because small ones spoil the inverse.
func (m *masterProblem) dualRatio(row []float64) int32 {
	m.ratios = m.ratios[:0]
	bar := math.Inf(1)
	m.pricing.listByClass(m, row)
	for j := range m.columns {
		if m.inside[j] {
			continue
		}
		c := &m.columns[j]
		alpha, amount := 0.0, c.amount[:len(c.class)]
		for i, k := range c.class {
			alpha += m.pricing.worth[k] * amount[i]
		}
		if alpha < -speck {
			d := max(0, m.reducedCost(int32(j)))
			m.ratios = append(m.ratios, enteringRatio{int32(j), -alpha, d})
			bar = min(bar, (d+slack)/-alpha)
		}
	}
	for k, x := range row {
		if x > speck {
			d := max(0, m.prices[k])
			m.ratios = append(m.ratios, enteringRatio{int32(-1 - k), x, d})
			bar = min(bar, (d+slack)/x)
		}
	}
	enter, largest := int32(math.MinInt32), 0.0
	for _, t := range m.ratios {
		if t.reduced <= bar*t.pivot && t.pivot > largest {
			enter, largest = t.enter, t.pivot
		}
	}
	return enter
}

// slack is the error that prices may have for the sake of a larger pivot, in USD per hour.
const slack = speck
