package lowerbound

import (
	"math"
	"slices"
)

// mend is the number of steps that any repricing may take before it begins anew. With none nearly full clusters of
// infra/lab/ablation cost 2 % more in the mean.
const mend = 500

// kept is by how much, as a part of its price, a node may cost more than its pods are worth to be remembered.
const kept = 0.1

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

// demandIs changes how many pods there are, and mends the fleet by the dual simplex method, or anew when that
// takes more than so many steps.
func (m *masterProblem) demandIs(count []float64, steps int) {
	if m.first == nil {
		m.first = slices.Clone(m.demand)
		m.dropColumns()
	}
	for r, k := range m.class { // never quite 0, and never alike
		m.demand[r] = count[k] + m.first[r]*slight*unlike(r)
	}
	m.mendBasis(steps)
}

// setExchanges makes exchanges cost nothing, or so much that none is worth while.
func (m *masterProblem) setExchanges(on bool) {
	for j := range m.columns {
		c := &m.columns[j]
		if !c.exchanges() {
			continue
		}
		c.cost, c.wrong = 0, !on
		if !on {
			c.cost = 2*m.prices[m.row[c.class[len(c.class)-1]]] + speck
		}
	}
	m.computePrices()
	m.improveBasis()
}

// restartBasis begins anew with a node for each class alone, and all columns known.
func (m *masterProblem) restartBasis() {
	m.startBasis()
	before := m.steps
	m.improveBasis()
	m.anew = m.steps - before
}

// demandExactly changes how many pods there are, and mends the fleet.
func (m *masterProblem) demandExactly(count []float64) {
	for r, k := range m.class { // never alike
		m.demand[r] = count[k] + speck*unlike(r)
	}
	m.mendBasis(mend)
}

// mendBasis makes the fleet hold the demand by the dual simplex method, or anew when that takes more than so many
// steps.
func (m *masterProblem) mendBasis(steps int) {
	n := m.rowCount()
	for r := range n {
		has, norm := 0.0, 0.0
		demand := m.demand[:n]
		for k, x := range m.inverse[r*n : r*n+n] {
			has += x * demand[k]
			norm += x * x
		}
		m.has[r], m.norm[r] = has, norm
	}
	m.dual = true
	defer func() { m.dual = false }()
	for range steps {
		leave, most := -1, 0.0
		for r, x := range m.has { // the steepest edge
			if x < -speck && x*x > most*m.norm[r] {
				leave, most = r, x*x/m.norm[r]
			}
		}
		if leave < 0 {
			return
		}
		enter := m.dualRatio(m.inverse[leave*n : leave*n+n])
		if enter == math.MinInt32 {
			break
		}
		m.basicSteps(enter)
		if m.step[leave] > -tolerance { // the row and the column disagree: rounding has spoilt the inverse
			break
		}
		m.exchangeBasic(enter, leave, m.has[leave]/m.step[leave])
	}
	m.dual = false
	m.restartBasis()
}
