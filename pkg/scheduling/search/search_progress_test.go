package search

import (
	"math"
	"testing"
)

// With work to spare a search is the more patient the more often it saved enough; a few hundred steps are few.
func TestPatienceGrowsWithWhatSearchesSave(t *testing.T) {
	budget := searchLimit{steps: math.MaxInt, work: 1}
	for _, x := range []struct {
		nodes, times int
		most         searchLimit
		want         int
	}{
		{1000, 0, budget, 1000}, {1000, 1, budget, 2000}, {1000, 3, budget, 4000}, {1000, 9, budget, 8000},
		{80, 0, budget, 400}, {80, 9, budget, 640}, {10, 0, budget, 100},
		{1000, 0, searchLimit{steps: 400}, 100}, {10, 0, searchLimit{steps: 400}, 100},
		{1000, 0, searchLimit{steps: 4000}, 8000}, {10, 0, searchLimit{steps: 4000}, 1000},
	} {
		s := &localSearch{nodes: make([]*searchNode, x.nodes)}
		if got := s.patienceFor(x.most, x.times); got != x.want {
			t.Errorf("%d nodes, saved enough %d times, at most %+v: patience is %d steps, want %d", x.nodes, x.times, x.most,
				got, x.want)
		}
	}
}

// A USD per hour is worth five seconds of work: a small gain is worth a step of a millisecond, but not one of a second.
func TestSearchGoesOnWhileWorkPays(t *testing.T) {
	for _, x := range []struct {
		gain   float64
		work   int
		budget bool
		since  int
	}{
		{0.01, 40 * millisecond, true, 0}, {0.01, 60 * millisecond, true, 1}, {0, 0, true, 1},
		{0.01, 40 * millisecond, false, 1},
	} {
		p := searchProgress{}
		if enough := p.countStep(x.gain, 100, x.work, x.budget); enough || p.since != x.since {
			t.Errorf("%+v: enough is %v after %d steps that did not pay, want false and %d", x, enough, p.since, x.since)
		}
	}
	p := searchProgress{since: 9}
	if enough := p.countStep(0.2, 100, 7, true); !enough || p != (searchProgress{paid: 7, times: 1}) {
		t.Errorf("0.2 of 100 USD is enough to save, and it is %v: %+v", enough, p)
	}
}
