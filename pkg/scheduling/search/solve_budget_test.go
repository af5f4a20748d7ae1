package search

import (
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/testing/manypods"
)

// All new nodes are chosen together only where the time that a pass has left is enough for it.
func TestAFleetIsChosenTogetherWithinTheTimeLeft(t *testing.T) {
	for milliseconds, want := range map[int]bool{0: true, 128: true, 16: false} {
		s := manypods.Services(t, 500)
		s.Rules.PackingMilliseconds = milliseconds
		p := packing.NewProblem(s, manypods.Sold(s))
		first, st := placeMostPods(p)
		b := newBudget(first, st.pricing)
		if got := b.allowsFleet(first, st.pricing); got != want {
			t.Errorf("with %d ms of a core: %v, want %v", milliseconds, got, want)
		}
	}
}

// What a pass may do is within the time that it has left, whatever a plan is worth.
func TestABudgetIsWithinTheTimeLeft(t *testing.T) {
	s := manypods.Services(t, 500)
	for _, milliseconds := range []int{1, 64, 4096} {
		s.Rules = cluster.Settings{PackingMilliseconds: milliseconds}
		p := packing.NewProblem(s, manypods.Sold(s))
		first, st := placeMostPods(p)
		if b := newBudget(first, st.pricing); b.left <= 0 || b.left > milliseconds*millisecond || b.fleet > milliseconds*millisecond {
			t.Errorf("with %d ms of a core: %+v", milliseconds, *b)
		}
	}
}

// More may go into a plan where that is asked for, to measure what it does.
func TestABudgetGrowsWithTheEffort(t *testing.T) {
	s := manypods.Services(t, 500)
	s.Rules.PackingMilliseconds = 64
	p := packing.NewProblem(s, manypods.Sold(s))
	first, st := placeMostPods(p)
	once := newBudget(first, st.pricing)
	p.S.Rules.PackingEffort = 10
	if b := newBudget(first, st.pricing); b.left != 10*once.left || b.most != 10*once.most {
		t.Errorf("ten times the work: %+v, once: %+v", *b, *once)
	}
}

// A plan that nothing searches for chooses all nodes together only where that takes next to nothing: disruption asks for
// thousands of such plans.
func TestAnUnsearchedFleetIsChosenTogetherOnlyIfSmall(t *testing.T) {
	for pods, want := range map[int]bool{40: true, 2000: false} {
		s := manypods.Services(t, pods)
		s.Rules.PackingIterations = cluster.NoIterations
		p := packing.NewProblem(s, manypods.Sold(s))
		first, st := placeMostPods(p)
		if got := newBudget(first, st.pricing).allowsFleet(first, st.pricing); got != want {
			t.Errorf("%d pods: %v, want %v", pods, got, want)
		}
		p.S.Rules.PackingIterations = 0
		if !newBudget(first, st.pricing).allowsFleet(first, st.pricing) {
			t.Errorf("%d pods: no fleet is chosen together even where a search follows", pods)
		}
	}
}
