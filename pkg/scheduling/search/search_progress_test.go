package search

import (
	"math"
	"testing"
)

// Patience grows with the nodes where there is work to spare or more steps are asked for; a few hundred steps are few.
func TestPatienceGrowsWithNodes(t *testing.T) {
	budget := searchLimit{steps: math.MaxInt, work: 1}
	for _, x := range []struct {
		nodes int
		most  searchLimit
		want  int
	}{
		{1000, budget, 4000}, {80, budget, 320}, {10, budget, 100},
		{1000, searchLimit{steps: 400}, 100}, {10, searchLimit{steps: 400}, 100},
		{1000, searchLimit{steps: 4000}, 4000}, {10, searchLimit{steps: 4000}, 100},
	} {
		s := &localSearch{nodes: make([]*searchNode, x.nodes)}
		if got := s.patienceFor(x.most); got != x.want {
			t.Errorf("%d nodes, at most %+v: patience is %d steps, want %d", x.nodes, x.most, got, x.want)
		}
	}
}

// Steps count until they have saved a small gap together.
func TestStepsCountUntilTheySavedEnough(t *testing.T) {
	p := searchProgress{}
	for i, x := range []struct {
		gain  float64
		since int
	}{{0, 1}, {0.03, 2}, {0, 3}, {0.03, 0}, {0.01, 1}} {
		if p.countStep(x.gain, 100); p.since != x.since {
			t.Errorf("step %d, which saves %v of 100 USD: %d steps since enough was saved, want %d", i+1, x.gain, p.since,
				x.since)
		}
	}
}
