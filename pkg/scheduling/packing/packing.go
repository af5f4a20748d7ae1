package packing

import (
	"cmp"
	"maps"
	"slices"

	"joiner.sh/pkg/scheduling/podclass"
)

// guide is a way to choose new nodes.
type guide uint8

// Ways to choose new nodes.
const (
	ByShadowPrice   guide = iota // one after the other, by the prices of pods
	ByCostShare                  // one after the other, by the price of each pod's share of a node
	ByLinearProgram              // all together, as far as few rules tie pods to each other
)

// Strategy says how one solution is made.
type Strategy struct {
	Prices            priceSource
	Guide             guide
	ByPriority        bool        // pods of the highest priority first, not all at once
	Turns             map[int]int // by class: those with more of them choose before others, see withLeftFirst
	IgnorePreferences bool        // pods ask for no more than they require
	SpotCeiling       int64       // most spot capacity, in millicores, in one pool of capacity; 0 for no limit
	HostsByPrices     bool        // hosts are filled with what would cost most elsewhere
	NodeCost          float64     // what a node costs beside its price, USD per hour
}

// classDomain is a class of pods in a domain of a topology key, or anywhere if it has no key.
type classDomain struct {
	Class  int
	Key    string
	Domain string
}

// Pack packs everything, at once or one priority after the other. Where limits stop new nodes and leave pods that
// spread without a place that had one at first, it asks whether fewer of them, divided evenly, find more.
func (p *Problem) Pack(st Strategy) *Solution {
	s, first := p.repairUntilStable(st, false)
	if !first.MayBeLimited() || s.Waiting() <= first.Waiting() {
		return s
	}
	if b, _ := p.repairUntilStable(st, true); b.Waiting() < s.Waiting() {
		return b
	}
	return s
}

// mostRestarts bounds how often a pass starts again because a domain turned out to hold fewer pods than it was
// given.
const mostRestarts = 6

// repairUntilStable is the solution that keeps all rules, and the first one, which may not. It starts again while some
// domain (a zone, say) takes fewer pods than planned, so that the others are not filled beyond what a spread allows.
// Evenly, pods that spread take turns instead when limits are short: fewer of them are divided over all domains, the
// least crowded first.
func (p *Problem) repairUntilStable(st Strategy, evenly bool) (s, first *Solution) {
	ls := &lessons{caps: map[classDomain]int{}, groups: map[int]bool{}, wanted: map[classDomain]bool{}}
	for range mostRestarts + 1 {
		pk := newPacking(p.NewSolution(st), ls)
		pk.run()
		if s = pk.a; first == nil {
			first = s
		}
		if ls.noteScattered(s) {
			continue // what domains could not take tells little
		}
		if evenly && ls.learnTurns(pk) {
			continue
		}
		followed := ls.wantFollowed(pk)
		if lowered := ls.lowerDomainCaps(pk); !lowered && !followed {
			break
		}
	}
	s.trimBrokenRules()
	if b := p.withHeldBack(st, ls, s); b != nil && b.Waiting() < s.Waiting() {
		s = b
	}
	return s, first
}

// withHeldBack is the solution again, in which pods of a that wait because a domain was to take fewer of them are asked
// about once more, when all others have their places: of several that were too many together one may be let in. It is
// nil where there are none.
func (p *Problem) withHeldBack(st Strategy, ls *lessons, s *Solution) *Solution {
	held := func(class *podclass.Class) bool { return len(s.Rest[class.ID]) > 0 && ls.isCapped(class) }
	if !slices.ContainsFunc(p.Classes.List, held) {
		return nil
	}
	pk := newPacking(p.NewSolution(st), ls)
	pk.run()
	pk.learned = &lessons{groups: ls.groups}
	pk.resetLevels()
	pk.packTier(func(*podclass.Class) bool { return true }) // others may follow them
	pk.a.trimBrokenRules()
	return pk.a
}

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

// run places all pods, those first that nodes are on their way for, and uses the room there is before it makes nodes.
func (pk *packing) run() {
	if pk.placeNominated() {
		pk.placeOnExisting()
	}
	if !pk.a.Strategy.ByPriority {
		pk.packTurns(func(*podclass.Class) bool { return true })
		return
	}
	var all []int32
	for _, class := range pk.a.W.Classes.List {
		all = append(all, class.Pod.Priority)
	}
	slices.SortFunc(all, func(x, y int32) int { return cmp.Compare(y, x) })
	for _, p := range slices.Compact(all) {
		pk.packTurns(func(class *podclass.Class) bool { return class.Pod.Priority == p })
	}
	// some may have waited for pods of lower priority to be near to
	pk.packTier(func(*podclass.Class) bool { return true })
}

// placeOnExisting uses the room there is, up to the last relaxation, before any new node is considered. It comes first
// while claims of an earlier pass are on their way: pods that found room then find it again, and mere preferences make
// no more nodes.
func (pk *packing) placeOnExisting() {
	pk.roomOnly = true
	pk.packTurns(func(*podclass.Class) bool { return true })
	pk.roomOnly = false
	pk.resetLevels()
}

// packTurns packs the classes that in accepts, those first that had no place in most solutions before.
func (pk *packing) packTurns(in func(*podclass.Class) bool) {
	turns := pk.a.Strategy.Turns
	all := slices.Sorted(maps.Values(turns))
	slices.SortFunc(all, func(x, y int) int { return cmp.Compare(y, x) })
	for _, n := range slices.Compact(all) {
		pk.packTier(func(class *podclass.Class) bool { return in(class) && turns[class.ID] == n })
	}
	pk.packTier(in)
}

// PackTier packs the classes that in accepts as if there were no others.
func (s *Solution) PackTier(in func(*podclass.Class) bool) { newPacking(s, &lessons{}).packTier(in) }

// packTier packs the classes that in accepts, first with every preference as a rule, then ever more relaxed. Each round
// divides the pods over domains, fills the room there is and makes nodes for the rest.
func (pk *packing) packTier(in func(*podclass.Class) bool) {
	var earlier []*PodBatch
	for {
		var now []*podclass.Class
		for i, class := range pk.a.W.Classes.List {
			if len(pk.a.Rest[i]) > 0 && in(class) {
				now = append(now, class)
			}
		}
		before := pk.a.countWaiting(now)
		pk.settleSpread(now)
		batches := pk.divideIntoBatches(now)
		groupPlacer{a: pk.a, pk: pk}.placeScattered(now, batches)
		pk.useHosts(batches)
		if !pk.roomOnly {
			NodeOpener{A: pk.a}.openNodes(batches)
		}
		// What was placed may be what others had to wait for, so the last word is a round that places nothing.
		if left := pk.a.countWaiting(now); !pk.relaxLeft(now) && (left == 0 || left == before) {
			pk.rememberFailedDomains(batches, earlier)
			return
		}
		earlier = append(earlier, batches...)
	}
}

// relaxLeft lets each of the classes that has pods left give up one preference more; false when none has any.
func (pk *packing) relaxLeft(now []*podclass.Class) bool {
	relaxed := false
	for _, class := range now {
		if len(pk.a.Rest[class.ID]) > 0 && pk.level[class.ID] < len(class.Views)-1 {
			pk.level[class.ID]++
			relaxed = true
		}
	}
	return relaxed
}

// resetLevels asks for every preference again, or for none where the strategy ignores them.
func (pk *packing) resetLevels() {
	for i, class := range pk.a.W.Classes.List {
		if pk.level[i] = 0; pk.a.Strategy.IgnorePreferences {
			pk.level[i] = len(class.Views) - 1
		}
	}
}

// currentRelaxation is the class as far as it is relaxed.
func (pk *packing) currentRelaxation(class *podclass.Class) *podclass.RelaxedPod {
	return class.Views[pk.level[class.ID]]
}
