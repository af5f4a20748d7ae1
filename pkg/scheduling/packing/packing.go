package packing

import (
	"cmp"
	"maps"
	"slices"

	"joiner.sh/pkg/scheduling/podclass"
)

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
// given. Three and twelve give the workloads of infra/lab/ablation the same plans; with two, eight of 5,000 random
// worlds place fewer pods.
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
