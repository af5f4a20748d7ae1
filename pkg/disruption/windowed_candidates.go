package disruption

import (
	"slices"

	v1 "joiner.sh/pkg/api/v1"
)

// looksPerQuestion is the number of nodes at which a pass may look, for pods that would move, to put sets of nodes
// further down together, for each question that it may ask. With 24 questions that is about a second; fleets of up to
// 500 nodes do not need it.
const looksPerQuestion = 4_000_000

// SearchWindow is the point that a search has come to among the sets of nodes further down.
type SearchWindow struct {
	Order int `json:"order,omitempty"` // of the two, 2 when all were looked at
	From  int `json:"from,omitempty"`  // of the nodes in that order
	Count int `json:"count,omitempty"` // of windows in that order
}

// askWindows evaluates the windows from the one given on. When no work is left to put more of them together the next
// pass goes on from there, and from the same one again if not all of these were evaluated.
func (s *setSearch) askWindows(at *SearchWindow) {
	sets, next := s.windowSets(*at)
	if s.evaluateSets(sets); s.unfinished || s.found {
		return
	}
	*at = next
	s.unfinished = next.Order < 2
}

// windowSets returns sets of nodes that promise something together, from the most wasteful on: by what each pod moved
// earns, and, because budgets count nodes, by what each node wastes. In both orders together they are as many as the
// questions of a pass, each with its better halves. It returns where it ended.
func (s *setSearch) windowSets(at SearchWindow) (out []candidateSet, next SearchWindow) {
	b := s.eval.consolidationSimulator()
	most, maxWindows := b.Looks()+s.maxLooks, max(1, s.eval.meter.steps/2)
	for ; at.Order < 2; at = (SearchWindow{Order: at.Order + 1}) {
		all := slices.SortedFunc(slices.Values(s.shared), []func(a, b *stateNode) int{byWaste, byTotalWaste}[at.Order])
		for ; at.From < len(all) && at.Count < maxWindows; at.Count++ {
			if b.Looks() > most {
				return out, at
			}
			next := slices.Concat(all[at.From:], all[:at.From])
			some := s.greedySet(next, true)
			out = append(out, s.halveSet(some)...)
			out = append(out, s.halveSet(s.budget.limitSet(next, v1.DisruptionUnderutilized))...)
			at.From += max(len(some), len(all)/maxWindows, 1)
		}
	}
	return out, at
}
