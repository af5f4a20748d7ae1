package binpack

import (
	"cmp"
	"maps"
	"slices"

	"joiner.sh/pkg/scheduling/lowerbound"
	"joiner.sh/pkg/scheduling/podclass"
)

// guide is how new nodes are chosen.
type guide uint8

// Ways to choose new nodes.
const (
	byShadowPrice   guide = iota // one after the other, by the prices of pods
	byCostShare                  // one after the other, by the price of each pod's share of a node
	byLinearProgram              // all together, as far as few rules tie pods to each other
)

// strategy is how one solution is made.
type strategy struct {
	prices            priceSource
	guide             guide
	byPriority        bool                // pods of the highest priority first, not all at once
	turns             map[int]int         // by class: those with more of them choose before others, see withLeftFirst
	ignorePreferences bool                // pods ask for no more than they require
	caps              map[classDomain]int // most pods of a class in a domain, see improveDomains
	spotCeiling       int64               // most spot capacity, in millicores, in one pool of capacity; 0 for no limit
	hostsByPrices     bool                // hosts are filled with what would cost most elsewhere
	hostFills         *hostFills          // nil for none
	repricesHosts     bool                // what hostFills leave is priced anew while hosts are filled
	domainShares      map[classDomain]int // pods of a class that a domain gets before others get more
	nodeCost          float64             // what a node costs beside its price, USD per hour
}

// classDomain is a class of pods in a domain of a topology key, or anywhere if it has no key.
type classDomain struct {
	class  int
	key    string
	domain string
}

// pack packs everything, at once or one priority after the other. Where limits stop new nodes and leave pods that
// spread without a place that had one at first, it asks whether fewer of them, divided evenly, find more.
func (w *problem) pack(st strategy) *solution {
	a, first := w.repairUntilStable(st, false)
	if !first.mayBeLimited() || a.waiting() <= first.waiting() {
		return a
	}
	if b, _ := w.repairUntilStable(st, true); b.waiting() < a.waiting() {
		return b
	}
	return a
}

// mostRestarts bounds how often a pass starts again because a domain turned out to hold fewer pods than it was
// given.
const mostRestarts = 6

// repairUntilStable is the solution that keeps all rules, and the first one, which may not. It starts again while some
// domain (a zone, say) takes fewer pods than planned, so that the others are not filled beyond what a spread allows.
// Evenly, pods that spread take turns instead when limits are short: fewer of them are divided over all domains, the
// least crowded first.
func (w *problem) repairUntilStable(st strategy, evenly bool) (a, first *solution) {
	ls := &lessons{caps: maps.Clone(st.caps), groups: map[int]bool{}, wanted: map[classDomain]bool{}}
	if ls.caps == nil {
		ls.caps = map[classDomain]int{}
	}
	for range mostRestarts + 1 {
		pk := newPacking(w.newSolution(st), ls)
		pk.run()
		if a = pk.a; first == nil {
			first = a
		}
		if ls.noteScattered(a) {
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
	a.trimBrokenRules()
	return a, first
}

// packing is one run that fills a solution.
type packing struct {
	a        *solution
	learned  *lessons
	level    []int               // by class: how far it is relaxed
	stuck    map[classDomain]int // pods that a domain was given and could not take
	filled   []map[int32]int     // by host and price class: pods that it took by the strategy's hostFills
	roomOnly bool                // make no new nodes
}

func newPacking(a *solution, ls *lessons) *packing {
	pk := &packing{a: a, learned: ls, level: make([]int, len(a.w.classes.List)), stuck: map[classDomain]int{}}
	pk.resetLevels()
	return pk
}

// run places all pods, those first that nodes are on their way for, and uses the room there is before it makes nodes.
func (pk *packing) run() {
	if pk.placeNominated() {
		pk.placeOnExisting()
	}
	if !pk.a.strategy.byPriority {
		pk.packTurns(func(*podclass.Class) bool { return true })
		return
	}
	var all []int32
	for _, k := range pk.a.w.classes.List {
		all = append(all, k.Pod.Priority)
	}
	slices.SortFunc(all, func(x, y int32) int { return cmp.Compare(y, x) })
	for _, p := range slices.Compact(all) {
		pk.packTurns(func(k *podclass.Class) bool { return k.Pod.Priority == p })
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
	turns := pk.a.strategy.turns
	all := slices.Sorted(maps.Values(turns))
	slices.SortFunc(all, func(x, y int) int { return cmp.Compare(y, x) })
	for _, n := range slices.Compact(all) {
		pk.packTier(func(k *podclass.Class) bool { return in(k) && turns[k.ID] == n })
	}
	pk.packTier(in)
}

// packTier packs the classes that in accepts as if there were no others.
func (a *solution) packTier(in func(*podclass.Class) bool) { newPacking(a, &lessons{}).packTier(in) }

// packTier packs the classes that in accepts, first with every preference as a rule, then ever more relaxed. Each round
// divides the pods over domains, fills the room there is and makes nodes for the rest.
func (pk *packing) packTier(in func(*podclass.Class) bool) {
	var earlier []*podBatch
	for {
		var now []*podclass.Class
		for i, k := range pk.a.w.classes.List {
			if len(pk.a.rest[i]) > 0 && in(k) {
				now = append(now, k)
			}
		}
		before := pk.a.countWaiting(now)
		pk.settleSpread(now)
		batches := pk.divideIntoBatches(now)
		groupPlacer{a: pk.a, pk: pk}.placeScattered(now, batches)
		pk.useHosts(batches)
		if !pk.roomOnly {
			nodeOpener{a: pk.a}.openNodes(batches)
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
	for _, k := range now {
		if len(pk.a.rest[k.ID]) > 0 && pk.level[k.ID] < len(k.Views)-1 {
			pk.level[k.ID]++
			relaxed = true
		}
	}
	return relaxed
}

// resetLevels asks for every preference again, or for none where the strategy ignores them.
func (pk *packing) resetLevels() {
	for i, k := range pk.a.w.classes.List {
		if pk.level[i] = 0; pk.a.strategy.ignorePreferences {
			pk.level[i] = len(k.Views) - 1
		}
	}
}

// currentRelaxation is the class as far as it is relaxed.
func (pk *packing) currentRelaxation(k *podclass.Class) *podclass.RelaxedPod {
	return k.Views[pk.level[k.ID]]
}

// hostFill is how many pods of which price classes a host should take.
type hostFill = lowerbound.LimitedFill

// hostFills is what each host should take before anything else.
type hostFills struct {
	prices podPrices // the fills count pods of classes of these
	byHost []hostFill
}
