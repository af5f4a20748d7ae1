package disruption

import (
	"slices"
	"testing"
	"time"

	"joiner.sh/pkg/scheduling/binpack"
)

// However little work a pass may do, it does hardly more, and the cluster becomes cheap all the same: what is too much
// for what is left of a pass comes first in the next one, and of a search the first question is always asked.
func TestPassesOfLittleWorkComeToTheSame(t *testing.T) {
	w := newWorld()
	w.Snapshot = crowded(t, 40)
	w.Types = binpack.ResolveOfferings(w.Snapshot)(w.Snapshot.Classes[0].Name)
	w.Snapshot.Rules.ConsolidationMaxEvaluations = 1
	before, most, more := w.price(), 0, 0
	for range 24 {
		p, m, work := decideMeasured(newState(w.Snapshot, w.memory, w.Market, nil), w.memory)
		if work > 800 {
			more++
		}
		if rest := m.Search.Rest; len(rest) > 0 && slices.Equal(rest, w.memory.Search.Rest) {
			t.Errorf("%d nodes are left over once more", len(rest))
		}
		most = max(most, work)
		w.memory = m
		w.act(p)
		w.initialize()
		w.provision()
		w.Snapshot.Now = w.Snapshot.Now.Add(20 * time.Second)
	}
	if most > 2000 || more == 0 {
		t.Errorf("the most work of a pass was %d, and %d were more than 800", most, more)
	}
	if part := w.price() / before; part > 0.5 {
		t.Errorf("it costs %.2f of what it did, want less than half", part)
	}
}

// With 24 questions a pass does work of 19,200.
func TestAQuestionIsAskedThatThereIsWorkLeftFor(t *testing.T) {
	for _, c := range []struct {
		name                string
		asked, work, before int // in the pass; before: about proposals
		sets                int // of the search that were asked about
		weighs              int
		want                bool
	}{
		{"the first, however much", 0, 0, 0, 0, 100_000, true},
		{"the first after drifted nodes", 12, 5_000, 0, 0, 100_000, true},
		{"the first after a proposal", 1, 9_000, 9_000, 0, 10_201, false},
		{"the first after a proposal, with enough left", 1, 9_000, 9_000, 0, 10_200, true},
		{"another", 3, 15_000, 0, 2, 4_200, true},
		{"another that is too much", 3, 15_000, 0, 2, 4_201, false},
		{"another after all questions", 24, 1_000, 0, 20, 10, false},
	} {
		s := &setSearch{eval: &Evaluator{meter: workMeter{steps: 24, asked: c.asked, work: c.work, before: c.before}}, asked: c.sets}
		if got := s.mayEvaluate(candidateSet{work: c.weighs}); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// Sets that are more work than two passes may do are not asked about; smaller ones of the same nodes are.
func TestSetsThatAreTooMuchWorkAreHalved(t *testing.T) {
	s := crowded(t, 60)
	s.Rules.ConsolidationMaxEvaluations = 1
	search := searchFor(newState(s, Memory{}, binpack.ResolveOfferings(s), nil))
	sizes := map[int]bool{}
	for _, x := range search.halveSet(search.all) {
		sizes[len(x.set)] = true
		if x.work > 1600 {
			t.Errorf("%d nodes are asked about, which is work of %d", len(x.set), x.work)
		}
	}
	if sizes[60] || !sizes[30] && !sizes[15] {
		t.Errorf("sets of these sizes are asked about: %v", sizes)
	}
}

// A node that may not go any more is not in the set that the pass before left over.
func TestANodeProtectedMeanwhileIsNotInTheSetLeftOver(t *testing.T) {
	s := crowded(t, 6)
	search := searchFor(newState(s, Memory{}, binpack.ResolveOfferings(s), nil))
	protected, other := search.all[0], search.all[1]
	search.shared = search.shared[1:]
	search.resumeSet([]string{protected.Claim.Name, other.Claim.Name})
	if _, asked := search.withOthers[protected]; asked {
		t.Errorf("%s is asked about", protected.Claim.Name)
	}
	if _, asked := search.withOthers[other]; !asked {
		t.Errorf("%s is not asked about", other.Claim.Name)
	}
}
