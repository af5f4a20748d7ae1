package disruption

import (
	"math"
	"testing"
)

// Sets of many nodes are left alone that promise less than all of about their size fell short by, once there were two
// of those.
func TestWhatOthersMissedByIsReckonedWith(t *testing.T) {
	s := &setSearch{}
	of := func(size int, usd float64) candidateSet { return candidateSet{set: make([]*stateNode, size), usd: usd} }
	s.recordShortfall(of(12, math.Inf(1)), 1)
	s.recordShortfall(of(12, 2), math.NaN())
	s.recordShortfall(of(10, 1.0), -0.5) // by 1.5
	if s.fallsShort(of(12, 0.1)) {
		t.Error("one set is enough to leave others alone")
	}
	s.recordShortfall(of(15, 0.9), -0.1) // by 1.0
	for _, x := range []struct {
		size int
		usd  float64
		want bool
	}{{8, 0.99, true}, {15, 0.99, true}, {12, 1.01, false}, {16, 0.99, false}, {7, 0.99, false}} {
		if got := s.fallsShort(of(x.size, x.usd)); got != x.want {
			t.Errorf("%d nodes that promise %v USD are left alone: %t, want %t", x.size, x.usd, got, x.want)
		}
	}
	s.recordShortfall(of(7, 1), 0)
	s.recordShortfall(of(7, 1), 0)
	if s.fallsShort(of(7, 0.5)) {
		t.Error("few nodes are left alone, of which others are no measure")
	}
}
