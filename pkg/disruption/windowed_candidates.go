package disruption

import (
	"slices"

	v1 "joiner/pkg/api/v1"
)

const (
	// mostWindows is how many sets of nodes further down are looked at in each of two orders, each with its better halves.
	mostWindows = 12
	// stepLooks is how many nodes a pass may look at, for pods that would move, to put such sets together, for each question that it may ask.
	// With 24 questions that is about a second; fleets of up to 500 nodes do not need it.
	stepLooks = 4_000_000
)

// SearchWindow is where a search has come to among the sets of nodes further down.
type SearchWindow struct {
	Order int `json:"order,omitempty"` // of the two, 2 when all were looked at
	From  int `json:"from,omitempty"`  // of the nodes in that order
	Count int `json:"count,omitempty"` // of windows in that order
}

// askWindows asks about the windows from the one given on. When there is no work left to put more of them together the next pass goes on from
// there, and from the same one again if it has not come to ask about all of these.
func (s *setSearch) askWindows(at *SearchWindow) {
	ideas, next := s.windowSets(*at)
	if s.evaluateSets(ideas); s.more || s.found {
		return
	}
	*at = next
	s.more = next.Order < 2
}

// windowSets are sets of nodes that promise something together, from the most wasteful on: by what each pod moved earns, and, because budgets
// count nodes, by what each node wastes. It returns where it ended.
func (s *setSearch) windowSets(at SearchWindow) (out []candidateSet, next SearchWindow) {
	b := s.eval.newPlacedSimulator()
	most := b.Looks() + s.looks
	for ; at.Order < 2; at = (SearchWindow{Order: at.Order + 1}) {
		all := slices.SortedFunc(slices.Values(s.all), []func(a, b *stateNode) int{byWaste, byLoss}[at.Order])
		for ; at.From < len(all) && at.Count < mostWindows; at.Count++ {
			if b.Looks() > most {
				return out, at
			}
			next := slices.Concat(all[at.From:], all[:at.From])
			some := s.greedySet(next, true)
			out = append(out, s.halveSet(some)...)
			out = append(out, s.halveSet(s.budget.Limit(next, v1.DisruptionUnderutilized))...)
			at.From += max(len(some), len(all)/mostWindows, 1)
		}
	}
	return out, at
}
