package disruption

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/scheduling/binpack"
)

// further is a search among the nodes of a cluster that may look at so many nodes.
func further(t *testing.T, looks int) *setSearch {
	t.Helper()
	snapshot := crowded(t, 60)
	s := searchFor(newState(snapshot, Memory{}, binpack.ResolveOfferings(snapshot), nil))
	s.maxLooks = looks
	return s
}

// searchFor is a search among all nodes that consolidation may look at.
func searchFor(st *State) *setSearch {
	ps := newPass(st, &progress{})
	all := ps.consolidationCandidates()
	s := &setSearch{eval: ps.eval, consolidation: ps.consolidation, budget: ps.budget, all: all, shared: all, refused: map[uint64]bool{}, withOthers: map[*stateNode]bool{}}
	s.eval.sortByWaste(s.all)
	return s
}

// The sets that several passes look at in parts are those that one pass looks at which may look at much: none is left
// out.
func TestWindowsInPartsAreAllWindows(t *testing.T) {
	sets := func(looks, least int) (ids []uint64) {
		s, parts := further(t, looks), 0
		for at := (SearchWindow{}); at.Order < 2; parts++ {
			var sets []candidateSet
			sets, at = s.windowSets(at)
			for _, x := range sets {
				ids = append(ids, digestOf(x.set))
			}
		}
		if parts < least {
			t.Errorf("they were looked at in %d parts, want %d or more", parts, least)
		}
		return ids
	}
	want := sets(1<<40, 1)
	if diff := cmp.Diff(want, sets(100_000, 4)); diff != "" || len(want) < 20 {
		t.Errorf("%d sets (-at once +in parts):\n%s", len(want), diff)
	}
}

// A search goes on from where it came to once all that it found there was asked about, and not before.
func TestASearchGoesOnFromItsWindow(t *testing.T) {
	for _, c := range []struct {
		name  string
		asked int // of 24 questions
		want  SearchWindow
	}{
		{"all was asked about", 0, SearchWindow{From: 6, Count: 1}},
		{"no question is left for one of the sets", 24, SearchWindow{}},
	} {
		s := further(t, 1)
		sets, _ := s.windowSets(SearchWindow{})
		for i, x := range sets {
			s.refused[digestOf(x.set)] = c.asked == 0 || i > 0
		}
		s.eval.meter.asked, s.eval.meter.before = c.asked, c.asked
		at := SearchWindow{}
		if s.askWindows(&at); at != c.want || !s.unfinished {
			t.Errorf("%s: it goes on from %v, want %v; more to ask: %t", c.name, at, c.want, s.unfinished)
		}
	}
}
