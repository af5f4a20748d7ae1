package binpack

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// This file is the whole search, from the top: which strategies are tried, what each does again, and what is kept.

const (
	// fewNodes is how many new nodes make it worth while to try a second way of choosing them. Of many, the first is
	// better.
	fewNodes = 120
	// smallGap is how near to the lower bound, as a part of it, a plan is good enough.
	smallGap = 0.0005
	// ceilingGap is the same of a plan that was as near as that until less of one pool of spot capacity made it dearer.
	ceilingGap = 0.005
	// scarceNodeUSD is what a node costs beside its price, in USD per hour, where limits leave few of them: more than
	// any instance.
	scarceNodeUSD = 1000
	// mostRestarts bounds how often a pass starts again because a domain turned out to hold fewer pods than it was
	// given.
	mostRestarts = 6
)

// guide is how new nodes are chosen.
type guide uint8

const (
	byShadowPrice   guide = iota // one after the other, by the prices of pods
	byCostShare                  // one after the other, by the price of each pod's share of a node
	byLinearProgram              // all together, as far as few rules tie pods to each other
)

// strategy is how one solution is made.
type strategy struct {
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

// solve tries the strategies, improves the best outcome, and writes it down with reasons for what is left.
func (w *problem) solve() plan.Plan {
	best, st := w.placeMostPods()
	fills := &hostFillSearch{w: w}
	if work := fills.workFor(best); work > 0 {
		best = fills.findCheaper(best, st, work)
	} else {
		best, _ = w.improve(best, st, math.MaxInt)
	}
	pw := &planWriter{a: best}
	out := plan.Plan{Skipped: w.catalog.skipped, Oversized: w.catalog.oversizedDaemons(),
		Unplaced: w.classes.unmodelled, Launches: pw.planLaunches()}
	out.LowerBoundUSD = best.lowerBound()
	out.Existing = pw.existingPlacements()
	out.Unplaced = append(out.Unplaced, explainer{a: best}.explainUnplaced()...)
	slices.SortFunc(out.Unplaced, func(a, b plan.Unplaced) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// placeMostPods is the solution that places most pods, for the least of several ways to do so before anything is packed
// anew, and the strategy to go on with.
func (w *problem) placeMostPods() (*solution, strategy) {
	st := w.plainStrategy()
	best := w.withinLimits(w.packByPrices(st), st)
	if best.isShort() && w.classes.distinctPriorities() > 1 {
		st.byPriority = true
		best = w.withinLimits(w.packByPrices(st), st)
	}
	best = w.withLeftFirst(best, st)
	return w.withHostsByPrices(best, st)
}

// plainStrategy is what is tried first: all pods at once, by their prices.
func (w *problem) plainStrategy() strategy {
	return strategy{nodeCost: cmp.Or(w.s.Rules.PerNodeOverheadUSD, defaultNodeCost)}
}

// packByPrices packs everything by the prices of pods and, where the outcome leaves something to wish for, by the price
// of each pod's share of a node too. The second has to place as many pods for less.
func (w *problem) packByPrices(st strategy) *solution {
	st.guide = byShadowPrice
	first := w.pack(st)
	if first.used.opened == 0 || first.used.opened > fewNodes || isNearBound(first, smallGap) {
		return first
	}
	st.guide = byCostShare
	if second := w.pack(st); second.placesMoreOrCostsLess(first) {
		return second
	}
	return first
}

// withHostsByPrices is the solution, or another that gives the room there is to the pods that would cost most elsewhere
// and places as many pods for less, with the strategy to go on with. There is no room to give where nothing was placed
// on hosts, and nothing to save where no node is new.
func (w *problem) withHostsByPrices(best *solution, st strategy) (*solution, strategy) {
	if best.used.opened == 0 || w.s.Rules.PackingIterations == cluster.NoIterations ||
		!slices.ContainsFunc(best.bins, (*bin).hasGuests) {
		return best, st
	}
	w.alone = w.worth
	w.worth = w.findShadowPrices(func(k *podClass) int { return len(k.pods) - len(best.rest[k.id]) }, true)
	priced := st
	priced.hostsByPrices = true
	if a := w.packByPrices(priced); a.placesMoreOrCostsLess(best) {
		return a, priced
	}
	return best, st
}

// withinLimits is the solution, or another with as few nodes as can be, where limits leave pods that fewer and larger
// nodes have room for.
func (w *problem) withinLimits(a *solution, st strategy) *solution {
	if !a.mayBeLimited() || a.used.opened == 0 || a.used.opened > fewNodes || !a.isShort() {
		return a
	}
	st.nodeCost = scarceNodeUSD
	if b := w.packByPrices(st); b.leavesFewer(a) {
		b.strategy.nodeCost = a.strategy.nodeCost
		return b
	}
	return a
}

// improve is the solution after all searches for something cheaper: other domains for pods that gather, less in one
// pool of spot capacity, and all new nodes chosen together or, where that is not cheaper, a few at a time packed anew.
// What remains of the work that the plan is worth then goes into the best of them, at most as much as is given. It
// returns the work that searches took.
func (w *problem) improve(a *solution, st strategy, most int) (*solution, int) {
	a = w.improveDomains(a, st)
	near := isNearBound(a, smallGap)
	if a = w.diversifySpot(a, st); near && isNearBound(a, ceilingGap) {
		return a, 0
	}
	b := w.newBudget(a)
	b.left = min(b.left, most)
	quick := cmp.Or(w.s.Rules.PackingIterations, defaultSearchSteps)
	if quick > 0 {
		tellSearched(a)
	}
	first := a
	a, other := w.packByLinearProgram(a, st, b)
	if a == first {
		b.used += improveByLocalSearch(a, searchLimit{steps: quick})
	}
	if w.s.Rules.PackingIterations != 0 || !b.allowsSearch() {
		return a, b.used
	}
	deep := searchLimit{steps: math.MaxInt, done: quick, work: b.left}
	if other != nil && a.used.opened <= veryFewNodes { // with few nodes it is mere chance which of them ends cheaper
		deep.work /= 2
		b.used += improveByLocalSearch(other, deep)
	}
	b.used += improveByLocalSearch(a, deep)
	if other != nil && other.totalCost() < a.totalCost()*(1-1e-9) {
		return other, b.used
	}
	return a, b.used
}

// packByLinearProgram chooses all new nodes together, where that takes no more than a part of the work that the plan is
// worth. It returns the cheaper of the two solutions, and the other where that places as many pods.
func (w *problem) packByLinearProgram(best *solution, st strategy, b *workBudget) (cheaper, other *solution) {
	if best.strategy.guide == byLinearProgram || best.used.opened == 0 || w.worth == nil ||
		isNearBound(best, smallGap) || !b.allowsFleet(best) {
		return best, nil
	}
	st.guide, st.caps = byLinearProgram, best.strategy.caps
	next := w.diversifySpot(w.pack(st), st)
	if b.allowsSearch() {
		steps := cmp.Or(w.s.Rules.PackingIterations, defaultSearchSteps)
		b.used += improveByLocalSearch(next, searchLimit{steps: steps})
	}
	if next.waiting() != best.waiting() {
		return best, nil
	}
	if next.totalCost() < best.totalCost()*(1-1e-9) {
		return next, best
	}
	return best, next
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
	pk := &packing{a: a, learned: ls, level: make([]int, len(a.w.classes.list)), stuck: map[classDomain]int{}}
	pk.resetLevels()
	return pk
}

// run places all pods, those first that nodes are on their way for, and uses the room there is before it makes nodes.
func (pk *packing) run() {
	if pk.placeNominated() {
		pk.placeOnExisting()
	}
	if !pk.a.strategy.byPriority {
		pk.packTurns(func(*podClass) bool { return true })
		return
	}
	var all []int32
	for _, k := range pk.a.w.classes.list {
		all = append(all, k.pod.Priority)
	}
	slices.SortFunc(all, func(x, y int32) int { return cmp.Compare(y, x) })
	for _, p := range slices.Compact(all) {
		pk.packTurns(func(k *podClass) bool { return k.pod.Priority == p })
	}
	pk.packTier(func(*podClass) bool { return true }) // some may have waited for pods of lower priority to be near to
}

// placeOnExisting uses the room there is, up to the last relaxation, before any new node is considered. It comes first
// while claims of an earlier pass are on their way: pods that found room then find it again, and mere preferences make
// no more nodes.
func (pk *packing) placeOnExisting() {
	pk.roomOnly = true
	pk.packTurns(func(*podClass) bool { return true })
	pk.roomOnly = false
	pk.resetLevels()
}

// packTurns packs the classes that in accepts, those first that had no place in most solutions before.
func (pk *packing) packTurns(in func(*podClass) bool) {
	turns := pk.a.strategy.turns
	all := slices.Sorted(maps.Values(turns))
	slices.SortFunc(all, func(x, y int) int { return cmp.Compare(y, x) })
	for _, n := range slices.Compact(all) {
		pk.packTier(func(k *podClass) bool { return in(k) && turns[k.id] == n })
	}
	pk.packTier(in)
}

// packTier packs the classes that in accepts, first with every preference as a rule, then ever more relaxed. Each round
// divides the pods over domains, fills the room there is and makes nodes for the rest.
func (pk *packing) packTier(in func(*podClass) bool) {
	var earlier []*podBatch
	for {
		var now []*podClass
		for i, k := range pk.a.w.classes.list {
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
func (pk *packing) relaxLeft(now []*podClass) bool {
	relaxed := false
	for _, k := range now {
		if len(pk.a.rest[k.id]) > 0 && pk.level[k.id] < len(k.views)-1 {
			pk.level[k.id]++
			relaxed = true
		}
	}
	return relaxed
}

// resetLevels asks for every preference again, or for none where the strategy ignores them.
func (pk *packing) resetLevels() {
	for i, k := range pk.a.w.classes.list {
		if pk.level[i] = 0; pk.a.strategy.ignorePreferences {
			pk.level[i] = len(k.views) - 1
		}
	}
}

// currentRelaxation is the class as far as it is relaxed.
func (pk *packing) currentRelaxation(k *podClass) *relaxedPod { return k.views[pk.level[k.id]] }
