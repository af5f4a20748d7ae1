package disrupt

import (
	"math"
	"testing"
)

// Sets are left alone that promise less than all of about their size fell short by, once there were two of those.
func TestWhatOthersMissedByIsReckonedWith(t *testing.T) {
	s := &search{}
	of := func(size int, usd float64) idea { return idea{set: make([]*node, size), usd: usd} }
	s.learn(of(6, math.Inf(1)), 1)
	s.learn(of(6, 2), math.NaN())
	s.learn(of(5, 1.0), -0.5) // by 1.5
	if s.idle(of(6, 0.1)) {
		t.Error("one set is enough to leave others alone")
	}
	s.learn(of(7, 0.9), -0.1) // by 1.0
	for _, x := range []struct {
		size int
		usd  float64
		want bool
	}{{4, 0.99, true}, {7, 0.99, true}, {6, 1.01, false}, {8, 0.99, false}, {3, 0.99, false}} {
		if got := s.idle(of(x.size, x.usd)); got != x.want {
			t.Errorf("%d nodes that promise %v USD are left alone: %t, want %t", x.size, x.usd, got, x.want)
		}
	}
	s.learn(of(1, 1), 0)
	s.learn(of(1, 1), 0)
	if s.idle(of(1, 0.5)) {
		t.Error("a single node is left alone, and nobody says why it stays")
	}
}
