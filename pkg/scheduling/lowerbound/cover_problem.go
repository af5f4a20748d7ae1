package lowerbound

import (
	"math"
	"slices"

	"joiner.sh/pkg/model/rounding"
	"joiner.sh/pkg/scheduling/cover"
)

// problem is the covering problem that is solved.
type problem cover.Problem

// ClassPrices is the outcome.
type ClassPrices struct {
	Value  []float64 // by class: the price of one pod; no offering can hold pods of more worth than it costs
	Bound  float64   // what any fleet for all classes costs at least: the sum of count times value
	Fill   []float64 // by offering: about the most worth that it can hold, as last asked
	Least  float64   // the cost of the fractional fleet that was found; Bound <= optimum of the relaxation <= Least
	Rounds int       // that were needed
}

// What is taken for rounding in numbers of about 1: of digits of a float64 sixteen are right, of which sums of some
// hundred products lose some.
const (
	// tolerance is for a gain, or for an amount that was computed at once.
	tolerance = rounding.Error
	// speck is for what was computed by an inverse that pivots have changed many times, a part of a node or of a pod
	// that is next to nothing, and a demand or a price that must not be nothing.
	speck = rounding.Speck
	// leastDivisor is for a divisor, and for an entry of an inverse.
	leastDivisor = rounding.LeastDivisor
	// plenty is more pods than one node holds.
	plenty = 1 / speck
)

// mostOn returns the number of pods of the class, whole ones, that one node with this room can hold.
func (p problem) mostOn(k int32, room []float64) float64 {
	c := p.Classes[k]
	n := math.Inf(1)
	if c.Most > 0 {
		n = c.Most
	}
	if c.Group >= 0 {
		n = min(n, p.Caps[c.Group])
	}
	for r, x := range c.Need {
		if x > 0 {
			n = min(n, room[r]/x)
		}
	}
	if math.IsInf(n, 1) {
		n = plenty // it takes nothing
	}
	if c.Parts {
		return max(0, n)
	}
	return max(0, math.Floor(n+tolerance))
}

// addLimits adds a class for each offering of which there are so many: a node of it is one pod less of a class that has
// as many less than none.
func (p *problem) addLimits(dims int) []int32 {
	limit := make([]int32, len(p.Offerings))
	p.Classes = slices.Clone(p.Classes)
	for i, o := range p.Offerings {
		limit[i] = -1
		if o.Limit > 0 {
			limit[i] = int32(len(p.Classes))
			p.Classes = append(p.Classes, cover.Class{Need: make([]float64, dims), Count: -o.Limit, Group: -1})
		}
	}
	return limit
}

// slight is the part of a cost or of a demand that is little enough not to matter, and enough to tell equals apart: as
// much more may fleets cost without exchanges before these count as wrong. Half costs 0.01 % more in the mean of the
// families of infra/lab/ablation, and one half-empty cluster 2.8 %.
const slight = 2 * rounding.Slight
