package disruption

import (
	"math"
	"testing"

	"joiner.sh/pkg/testing/scenario"
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

// What a set earns is known where the packer places all its pods. Where it leaves some, what the others cost says
// nothing about sets of that size.
func TestASetWithPodsLeftSaysNotWhatItEarns(t *testing.T) {
	for limit, known := range map[string]bool{"limit nodes 1": false, "limit nodes 2": true} {
		w, err := scenario.FromText([]string{
			"type m5.large cpu=2000 mem=8192 milliusd=96", "type m5.2xlarge cpu=8000 mem=32768 milliusd=384",
			"pool default\n" + limit, "node n1 type=m5.2xlarge zone=a pool=default", "pods a n=1 on=n1 cpu=1500 mem=512",
		})
		if err != nil {
			t.Fatal(err)
		}
		s := searchFor(newState(w.Snapshot, Memory{}, w.Market, nil))
		if got := s.consolidation.evaluateSet(s.all, true); len(s.all) != 1 || math.IsNaN(got.earnsUSD) == known {
			t.Errorf("%s: of %d nodes it is said that they earn %v", limit, len(s.all), got.earnsUSD)
		}
	}
}
