package binpack

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/plan"
)

// mostRestarts bounds how often a pass starts again because a domain turned out to hold fewer pods than it was given.
const mostRestarts = 6

// Offerings tells the instance types that a class may launch.
type Offerings func(class string) []instancetypes.Type

// ResolveOfferings is the market of the snapshot's catalog. It resolves each class once and may not be used
// concurrently.
func ResolveOfferings(s cluster.Snapshot) Offerings {
	known := map[string][]instancetypes.Type{}
	return func(class string) []instancetypes.Type {
		types, ok := known[class]
		if c, exists := s.ClassOf(class); !ok && exists {
			types = s.Catalog.AddCommitments(instancetypes.ResolveTypes(s.Catalog, c, s.SoldOut, s.Now))
			known[class] = types
		}
		return types
	}
}

// Pods decides where every pod without a place goes. It depends on nothing but the snapshot: equal snapshots give equal
// plans, in whatever order their lists are.
func Pods(s cluster.Snapshot) plan.Plan { return PodsFrom(s, ResolveOfferings(s)) }

// PodsFrom is Pods with the market given, which is worth keeping where the same question is asked of many snapshots.
func PodsFrom(s cluster.Snapshot, sells Offerings) plan.Plan {
	return planFor(newProblem(s, sells))
}

// planFor is the plan for the world.
func planFor(w *problem) plan.Plan {
	byPriority := false
	best := w.withinLimits(w.bestOf(byPriority), byPriority)
	if best.isShort() && w.distinctPriorities() > 1 {
		byPriority = true
		best = w.withinLimits(w.bestOf(byPriority), byPriority)
	}
	best = w.withLeftFirst(best, byPriority)
	best = w.solveByLinearProgram(w.improveSolution(best, byPriority), byPriority)
	out := plan.Plan{Skipped: w.skipped, Unplaced: w.unmodelled}
	out.Launches = best.planLaunches()
	out.LowerBoundUSD = best.lowerBound()
	out.Existing = best.existingPlacements()
	out.Unplaced = append(out.Unplaced, best.explainUnplaced()...)
	slices.SortFunc(out.Unplaced, func(a, b plan.Unplaced) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// fewNodes is how many new nodes make it worth while to try a second way of choosing them. Of many, the first is
// better.
const fewNodes = 120

// scarceNodeUSD is what a node costs beside its price, in USD per hour, where limits leave few of them: more than any
// instance.
const scarceNodeUSD = 1000

// bestOf packs everything by the prices of pods and, where the outcome leaves something to wish for, by the price of
// each pod's share of a node too. The second has to place as many pods for less.
func (w *problem) bestOf(byPriority bool) *solution {
	first := w.solve(byPriority, byShadowPrice)
	if first.opened == 0 || first.opened > fewNodes || first.newNodePrice() <= first.lowerBound()*(1+smallGap) {
		return first
	}
	second := w.solve(byPriority, byCostShare)
	a, b := first.countWaiting(w.kinds), second.countWaiting(w.kinds)
	if b < a || b == a && second.totalCost() < first.totalCost()*(1-1e-9) {
		return second
	}
	return first
}

// withinLimits is the attempt, or another with as few nodes as can be, where limits leave pods that fewer and larger
// nodes have room for.
func (w *problem) withinLimits(a *solution, byPriority bool) *solution {
	if !a.mayBeLimited() || a.opened == 0 || a.opened > fewNodes || !a.isShort() {
		return a
	}
	defer func(before float64) { w.s.Rules.PerNodeOverheadUSD = before }(w.s.Rules.PerNodeOverheadUSD)
	w.s.Rules.PerNodeOverheadUSD = scarceNodeUSD
	if b := w.bestOf(byPriority); b.leavesFewer(a) {
		return b
	}
	return a
}

// leavesFewer reports whether the attempt has a place for more pods than the other, of the highest priority in which
// they differ.
func (a *solution) leavesFewer(other *solution) bool {
	byPriority := map[int32]int{}
	for _, k := range a.w.kinds {
		byPriority[k.pod.Priority] += len(other.rest[k.id]) - len(a.rest[k.id])
	}
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(byPriority))) {
		if n := byPriority[p]; n != 0 {
			return n > 0
		}
	}
	return false
}

// smallGap is how near to the lower bound, as a part of it, a plan is good enough.
const smallGap = 0.005

// totalCost is the price of the new nodes with what any node costs.
func (a *solution) totalCost() float64 { return a.newNodePrice() + float64(a.opened)*a.w.nodeCost() }

// newNodePrice is what the new nodes cost, each as the cheapest offer that holds what is on it.
func (a *solution) newNodePrice() float64 {
	sum := 0.0
	var last *bin
	for _, b := range a.bins {
		if b.offer == nil {
			continue
		}
		if b.paid == 0 && last != nil && b.sameContents(last) {
			b.paid = last.paid
		}
		sum += a.priceOf(b)
		last = b
	}
	return sum
}

// sameContents reports whether two new nodes are alike but for the names of their pods.
func (b *bin) sameContents(o *bin) bool {
	return b.offer == o.offer && slices.EqualFunc(b.load, o.load, func(x, y podLoad) bool {
		return x.view == y.view && x.admit == y.admit && x.alt == y.alt && len(x.pods) == len(y.pods)
	})
}

// priceOf is what the new node costs as the cheapest offer of its pool that holds what is on it.
func (a *solution) priceOf(b *bin) float64 {
	if b.paid > 0 {
		return b.paid
	}
	used := make([]int64, len(a.w.dims))
	ports := false
	for _, l := range b.load {
		ports = ports || len(l.view.kind.pod.HostPorts) > 0
		for i, x := range l.view.kind.need {
			used[i] += x * int64(len(l.pods))
		}
	}
	price := b.offer.Price
	for _, o := range b.offer.model.pool.sale { // cheapest first
		if ports || o.Price >= price {
			break
		}
		if atLeast(o.room, used) && loadsAllowed(b.load, o) {
			price = o.Price
		}
	}
	b.paid = price
	return price
}

// solve packs everything, at once or one priority after the other. Where limits stop new nodes and leave pods that
// spread without a place that had one at first, it asks whether fewer of them, divided evenly, find more.
func (w *problem) solve(byPriority bool, by strategy) *solution {
	a, first := w.solveUntilConsistent(byPriority, by, false)
	if !first.mayBeLimited() || a.countWaiting(w.kinds) <= first.countWaiting(w.kinds) {
		return a
	}
	if b, _ := w.solveUntilConsistent(byPriority, by, true); b.countWaiting(w.kinds) < a.countWaiting(w.kinds) {
		return b
	}
	return a
}

// solveUntilConsistent is the attempt that keeps all rules, and the first one, which may not. It starts again while
// some domain (a zone, say) takes fewer pods than planned, so that the others are not filled beyond what a spread
// allows. Evenly, pods that spread take turns instead when limits are short: fewer of them are divided over all
// domains, the least crowded first.
func (w *problem) solveUntilConsistent(byPriority bool, by strategy, evenly bool) (a, first *solution) {
	caps, groups, wanted := maps.Clone(w.homes), map[int]bool{}, map[classDomain]bool{}
	if caps == nil {
		caps = map[classDomain]int{}
	}
	for range mostRestarts + 1 {
		a = w.newSolution(maps.Clone(caps), by)
		a.groups, a.wanted = groups, wanted
		a.runStrategy(byPriority)
		if first == nil {
			first = a
		}
		if a.noteScatteredGroups(groups) {
			continue // what domains could not take tells little
		}
		if evenly && a.learnTurns(caps) {
			continue
		}
		followed := a.wantFollowed(wanted)
		if lowered := a.lowerDomainCaps(caps); !lowered && !followed {
			break
		}
	}
	a.trimBrokenRules()
	return a, first
}

// classDomain is a kind in a domain of a topology key, or anywhere if it has no key.
type classDomain struct {
	kind   int
	key    string
	domain string
}

// distinctPriorities counts the distinct priorities of the pods.
func (w *problem) distinctPriorities() int {
	seen := map[int32]bool{}
	for _, k := range w.kinds {
		seen[k.pod.Priority] = true
	}
	return len(seen)
}

// solution is one try to place everything; the world stays as it is.
type solution struct {
	w        *problem
	caps     map[classDomain]int
	bins     []*bin
	rest     [][]string // by kind: the pods without a place
	level    []int      // by kind: how far it is relaxed
	tally    domainCounts
	total    []int // by counter of hostnames: pods anywhere
	usage    []poolUsage
	opened   int
	roomOnly bool                // make no new nodes
	groups   map[int]bool        // counters of pods to be near to, on nodes, that an earlier attempt scattered
	spot     spotUsage           // where the world has a ceiling
	slots    map[string]int64    // what capacity reservations and commitments have room for, by their ids
	by       strategy            // how new nodes are chosen
	blocked  []map[string]bool   // by kind: why it was held back, beside what a pool says
	stuck    map[classDomain]int // pods that a domain was given and could not take
	landed   map[classDomain]int // pods of a kind in a domain
	// domains in which a pod of the kind must be, for others have to be near it, see wantFollowed
	wanted map[classDomain]bool
}

func (w *problem) newSolution(caps map[classDomain]int, by strategy) *solution {
	a := &solution{
		w: w, caps: caps, by: by, level: make([]int, len(w.kinds)), rest: make([][]string, len(w.kinds)),
		blocked: make([]map[string]bool, len(w.kinds)), stuck: map[classDomain]int{}, landed: map[classDomain]int{},
		tally: w.tally.clone(), total: slices.Clone(w.total),
	}
	for i, k := range w.kinds {
		a.rest[i], a.blocked[i] = k.pods, map[string]bool{}
	}
	for _, b := range w.hosts {
		a.bins = append(a.bins, b.clone())
	}
	for _, p := range w.pools {
		a.usage = append(a.usage, p.used)
	}
	a.slots = w.reservationSlots()
	if w.ceiling > 0 {
		a.spot = w.standingSpot()
	}
	a.resetLevels()
	return a
}

func (a *solution) runStrategy(byPriority bool) {
	if a.placeNominated() {
		a.placeOnExisting()
	}
	if !byPriority {
		a.packTurns(func(*podClass) bool { return true })
		return
	}
	var all []int32
	for _, k := range a.w.kinds {
		all = append(all, k.pod.Priority)
	}
	slices.SortFunc(all, func(x, y int32) int { return cmp.Compare(y, x) })
	for _, p := range slices.Compact(all) {
		a.packTurns(func(k *podClass) bool { return k.pod.Priority == p })
	}
	a.packTier(func(*podClass) bool { return true }) // some may have waited for pods of lower priority to be near to
}

// placeOnExisting uses the room there is, up to the last relaxation, before any new node is considered. It comes first
// while claims of an earlier pass are on their way: pods that found room then find it again, and mere preferences make
// no more nodes.
func (a *solution) placeOnExisting() {
	a.roomOnly = true
	a.packTurns(func(*podClass) bool { return true })
	a.roomOnly = false
	a.resetLevels()
}

// packTier packs the kinds that in accepts, first with every preference as a rule, then ever more relaxed.
func (a *solution) packTier(in func(*podClass) bool) {
	for {
		var now []*podClass
		for i, k := range a.w.kinds {
			if len(a.rest[i]) > 0 && in(k) {
				now = append(now, k)
			}
		}
		before := a.countWaiting(now)
		a.settleSpread(now)
		lots := a.divideIntoBatches(now)
		a.placeScatteredGroups(now, lots)
		a.useHosts(lots)
		if !a.roomOnly {
			a.openNodes(lots)
		}
		relaxed := false
		for _, k := range now {
			if len(a.rest[k.id]) > 0 && a.level[k.id] < len(k.views)-1 {
				a.level[k.id]++
				relaxed = true
			}
		}
		// What was placed may be what others had to wait for, so the last word is a round that places nothing.
		if left := a.countWaiting(now); !relaxed && (left == 0 || left == before) {
			a.rememberFailedDomains(lots)
			return
		}
	}
}

// countWaiting counts the pods of the kinds that have no place yet.
func (a *solution) countWaiting(list []*podClass) int {
	n := 0
	for _, k := range list {
		n += len(a.rest[k.id])
	}
	return n
}

// isShort reports whether pods stayed without a home that some pool or host could have taken.
func (a *solution) isShort() bool {
	return slices.ContainsFunc(a.w.kinds, func(k *podClass) bool { return len(a.rest[k.id]) > 0 && a.couldHold(k) })
}

// couldHold reports whether some pool or host could take a pod of the kind, were there no others.
func (a *solution) couldHold(k *podClass) bool {
	return a.w.forSome(k.lastRelaxation()) || slices.ContainsFunc(a.w.hosts, func(b *bin) bool {
		return fitCount(k.need, b.room) > 0 && a.w.onHost(k.lastRelaxation().admit, b) >= 0
	})
}

func (a *solution) existingPlacements() []plan.Placement {
	var out []plan.Placement
	for _, b := range a.bins {
		if b.offer != nil {
			continue
		}
		for _, l := range b.load {
			for _, p := range l.pods {
				out = append(out, plan.Placement{Pod: p, Node: b.name})
			}
		}
	}
	slices.SortFunc(out, func(x, y plan.Placement) int {
		return cmp.Or(strings.Compare(x.Node, y.Node), strings.Compare(x.Pod, y.Pod))
	})
	return out
}
