package packing

import "joiner.sh/pkg/scheduling/podclass"

// packing is one run that fills a solution.
type packing struct {
	a        *Solution
	learned  *lessons
	level    []int               // by class: how far it is relaxed
	stuck    map[classDomain]int // pods that a domain was given and could not take
	roomOnly bool                // make no new nodes
}

func newPacking(s *Solution, ls *lessons) *packing {
	pk := &packing{a: s, learned: ls, level: make([]int, len(s.W.Classes.List)), stuck: map[classDomain]int{}}
	pk.resetLevels()
	return pk
}

// currentRelaxation is the class as far as it is relaxed.
func (pk *packing) currentRelaxation(class *podclass.Class) *podclass.RelaxedPod {
	return class.Views[pk.level[class.ID]]
}

// resetLevels asks for every preference again, or for none where the strategy ignores them.
func (pk *packing) resetLevels() {
	for i, class := range pk.a.W.Classes.List {
		if pk.level[i] = 0; pk.a.Strategy.IgnorePreferences {
			pk.level[i] = len(class.Views) - 1
		}
	}
}

// lessons holds what was learned from solutions that broke a rule or left pods out: later ones keep to it.
type lessons struct {
	caps   map[classDomain]int  // most pods of a class in a domain
	groups map[int]bool         // counters of pods to be near to, on nodes, that were scattered
	wanted map[classDomain]bool // domains in which a pod of the class must be, for others have to be near it
}

// lowerCap leaves room for so many pods of the class in the domain; false when there was no more before.
func (ls *lessons) lowerCap(p classDomain, most int) bool {
	if limit, ok := ls.caps[p]; ok && most >= limit {
		return false
	}
	ls.caps[p] = most
	return true
}

// isCapped reports whether some domain is to take fewer pods of the class than it could.
func (ls *lessons) isCapped(class *podclass.Class) bool {
	for p := range ls.caps {
		if p.Class == class.ID && p.Key != "" {
			return true
		}
	}
	return false
}
