package lowerbound

import (
	"slices"
	"testing"
)

// What is taken off a row is the same whether the row that leaves is mostly 0 or full.
func TestARowIsSubtractedWhereverItIsNotZero(t *testing.T) {
	for name, c := range map[string]struct{ pivotRow, want []float64 }{
		"mostly 0": {[]float64{0, 2, 0, 0, -1, 0}, []float64{1, 0, 1, 1, 1.5, 1}},
		"full":     {[]float64{4, 2, 0, 6, -1, 8}, []float64{-1, 0, 1, -2, 1.5, -3}},
	} {
		m := &masterProblem{}
		for k, p := range c.pivotRow {
			if p != 0 {
				m.filled, m.pivots = append(m.filled, int32(k)), append(m.pivots, p)
			}
		}
		row := []float64{1, 1, 1, 1, 1, 1}
		if m.subtractPivots(row, c.pivotRow, 0.5); !slices.Equal(row, c.want) {
			t.Errorf("%s: %v, want %v", name, row, c.want)
		}
	}
}

// A repricing that begins anew is remembered by its steps, and the next one may take as many before it does so too.
func TestARepricingTakesAsManyStepsAsBeginningAnew(t *testing.T) {
	p := market(3, 40)
	s := newSolver(p)
	s.generateColumns()
	counts := make([]float64, len(p.Classes))
	for k, c := range p.Classes {
		counts[k] = c.Count * float64(k%3) / 2
	}
	before := s.m.steps
	s.m.demandIs(counts, 0)
	if got := s.m.steps - before; s.m.anew != got || got < 20 {
		t.Errorf("%d steps are remembered of %d, want all and at least 20", s.m.anew, got)
	}
	if got := s.mendingSteps(); got != mend {
		t.Errorf("%d steps after a short beginning, want %d", got, mend)
	}
	s.m.anew = 3 * mend
	if got := s.mendingSteps(); got != 3*mend {
		t.Errorf("%d steps after a long beginning, want %d", got, 3*mend)
	}
}
