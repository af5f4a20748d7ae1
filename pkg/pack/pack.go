// Package pack decides where pods without a node go: onto nodes that exist or are on their way, and onto new ones.
//
// It knows the rules of the Kubernetes scheduler that matter for it (spec core.md §2 and §3) and prices. It refuses to know
// how anything is launched, and it never guesses: a pod with a constraint it does not know is unplaced with that reason.
// Pods that are alike form one kind, so the work grows with kinds, offers and nodes and hardly with pods.
//
// The path of a pod: demand.go makes kinds of pods, relax.go their views from strict to relaxed, domain.go divides them over
// zones and other domains, host.go uses the room there is, price.go tells what pods are worth and what any plan costs at
// least, guide.go, candidate.go and open.go choose new nodes, fleet.go all of them together where few are to be had, search.go packs a few of
// them anew where that is cheaper, launch.go writes them down, reason.go explains who stays without a home.
package pack

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/plan"
)

// mostRestarts bounds how often a pass starts again because a domain turned out to hold fewer pods than it was given.
const mostRestarts = 6

// Market tells the instance types that a class may launch.
type Market func(class string) []catalog.Type

// Sells is the market of the snapshot's catalog. It resolves each class once and may not be used concurrently.
func Sells(s cluster.Snapshot) Market {
	known := map[string][]catalog.Type{}
	return func(class string) []catalog.Type {
		types, ok := known[class]
		if c, exists := s.ClassOf(class); !ok && exists {
			types = s.Catalog.Paid(catalog.Resolve(s.Catalog, c, s.SoldOut, s.Now))
			known[class] = types
		}
		return types
	}
}

// Pods decides where every pod without a place goes. It depends on nothing but the snapshot: equal snapshots give equal
// plans, in whatever order their lists are.
func Pods(s cluster.Snapshot) plan.Plan { return PodsFrom(s, Sells(s)) }

// PodsFrom is Pods with the market given, which is worth keeping where the same question is asked of many snapshots.
func PodsFrom(s cluster.Snapshot, sells Market) plan.Plan {
	return decided(survey(s, sells))
}

// decided is the plan for the world.
func decided(w *world) plan.Plan {
	byPriority := false
	best := w.best(byPriority)
	if best.short() && w.priorities() > 1 {
		byPriority = true
		best = w.best(byPriority)
	}
	best = w.withinLimits(best, byPriority)
	best = w.fleets(w.finished(best, byPriority), byPriority)
	out := plan.Plan{Skipped: w.skipped, Unplaced: w.unmodelled}
	out.Launches = best.launches()
	out.LowerBoundUSD = best.bound()
	out.Existing = best.placements()
	out.Unplaced = append(out.Unplaced, best.unplaced()...)
	slices.SortFunc(out.Unplaced, func(a, b plan.Unplaced) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// fewNodes is how many new nodes make it worth while to try a second way of choosing them. Of many, the first is better.
const fewNodes = 120

// scarceNodeUSD is what a node costs beside its price, in USD per hour, where limits leave few of them: more than any instance.
const scarceNodeUSD = 1000

// best packs everything by the prices of pods and, where the outcome leaves something to wish for, by the price of each
// pod's share of a node too. The second has to place as many pods for less.
func (w *world) best(byPriority bool) *attempt {
	first := w.pass(byPriority, byPrices)
	if first.opened == 0 || first.opened > fewNodes || first.price() <= first.bound()*(1+smallGap) {
		return first
	}
	second := w.pass(byPriority, byShares)
	a, b := first.waiting(w.kinds), second.waiting(w.kinds)
	if b < a || b == a && second.cost() < first.cost()*(1-1e-9) {
		return second
	}
	return first
}

// withinLimits is the attempt, or another with as few nodes as can be, where limits leave pods that fewer and larger nodes have room for.
func (w *world) withinLimits(a *attempt, byPriority bool) *attempt {
	if !a.limited() || a.opened == 0 || a.opened > fewNodes || !a.short() {
		return a
	}
	defer func(before float64) { w.s.Rules.NodeCostUSD = before }(w.s.Rules.NodeCostUSD)
	w.s.Rules.NodeCostUSD = scarceNodeUSD
	if b := w.best(byPriority); b.leavesFewer(a) {
		return b
	}
	return a
}

// leavesFewer reports whether the attempt has a place for more pods than the other, of the highest priority in which they differ.
func (a *attempt) leavesFewer(other *attempt) bool {
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

// cost is the price of the new nodes with what any node costs.
func (a *attempt) cost() float64 { return a.price() + float64(a.opened)*a.w.nodeCost() }

// price is what the new nodes cost, each as the cheapest offer that holds what is on it.
func (a *attempt) price() float64 {
	sum := 0.0
	var last *bin
	for _, b := range a.bins {
		if b.offer == nil {
			continue
		}
		if b.paid == 0 && last != nil && b.like(last) {
			b.paid = last.paid
		}
		sum += a.priceOf(b)
		last = b
	}
	return sum
}

// like reports whether two new nodes are alike but for the names of their pods.
func (b *bin) like(o *bin) bool {
	return b.offer == o.offer && slices.EqualFunc(b.load, o.load, func(x, y load) bool {
		return x.view == y.view && x.admit == y.admit && x.alt == y.alt && len(x.pods) == len(y.pods)
	})
}

// priceOf is what the new node costs as the cheapest offer of its pool that holds what is on it.
func (a *attempt) priceOf(b *bin) float64 {
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
		if atLeast(o.room, used) && allow(b.load, o) {
			price = o.Price
		}
	}
	b.paid = price
	return price
}

// pass packs everything, at once or one priority after the other. Where limits stop new nodes and leave pods that spread without a place
// that had one at first, it asks whether fewer of them, divided evenly, find more.
func (w *world) pass(byPriority bool, by manner) *attempt {
	a, first := w.mended(byPriority, by, false)
	if !first.limited() || a.waiting(w.kinds) <= first.waiting(w.kinds) {
		return a
	}
	if b, _ := w.mended(byPriority, by, true); b.waiting(w.kinds) < a.waiting(w.kinds) {
		return b
	}
	return a
}

// mended is the attempt that keeps all rules, and the first one, which may not. It starts again while some domain (a zone, say) takes fewer
// pods than planned, so that the others are not filled beyond what a spread allows. Evenly, pods that spread take turns instead when
// limits are short: fewer of them are divided over all domains, the least crowded first.
func (w *world) mended(byPriority bool, by manner, evenly bool) (a, first *attempt) {
	caps, groups := maps.Clone(w.homes), map[int]bool{}
	if caps == nil {
		caps = map[place]int{}
	}
	for range mostRestarts + 1 {
		a = w.attempt(maps.Clone(caps), by)
		a.groups = groups
		a.run(byPriority)
		if first == nil {
			first = a
		}
		if a.scattered(groups) {
			continue // what domains could not take tells little
		}
		if learned := evenly && a.learnTurns(caps) || a.learn(caps); !learned {
			break
		}
	}
	a.trim()
	return a, first
}

// place is a kind in a domain of a topology key, or anywhere if it has no key.
type place struct {
	kind   int
	key    string
	domain string
}

// priorities counts the distinct priorities of the pods.
func (w *world) priorities() int {
	seen := map[int32]bool{}
	for _, k := range w.kinds {
		seen[k.pod.Priority] = true
	}
	return len(seen)
}

// attempt is one try to place everything; the world stays as it is.
type attempt struct {
	w        *world
	caps     map[place]int
	bins     []*bin
	rest     [][]string // by kind: the pods without a place
	level    []int      // by kind: how far it is relaxed
	tally    tally
	total    []int // by counter of hostnames: pods anywhere
	usage    []usage
	opened   int
	roomOnly bool              // make no new nodes
	groups   map[int]bool      // counters of pods to be near to, on nodes, that an earlier attempt scattered
	spot     spotUse           // where the world has a ceiling
	slots    map[string]int64  // what capacity reservations and commitments have room for, by their ids
	by       manner            // how new nodes are chosen
	blocked  []map[string]bool // by kind: why it was held back, beside what a pool says
	stuck    map[place]int     // pods that a domain was given and could not take
	landed   map[place]int     // pods of a kind in a domain
}

func (w *world) attempt(caps map[place]int, by manner) *attempt {
	a := &attempt{
		w: w, caps: caps, by: by, level: make([]int, len(w.kinds)), rest: make([][]string, len(w.kinds)),
		blocked: make([]map[string]bool, len(w.kinds)), stuck: map[place]int{}, landed: map[place]int{},
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
	a.slots = w.slots()
	if w.ceiling > 0 {
		a.spot = w.standingSpot()
	}
	return a
}

func (a *attempt) run(byPriority bool) {
	if a.nominated() {
		a.settle()
	}
	if !byPriority {
		a.tier(func(*kind) bool { return true })
		return
	}
	var all []int32
	for _, k := range a.w.kinds {
		all = append(all, k.pod.Priority)
	}
	slices.SortFunc(all, func(x, y int32) int { return cmp.Compare(y, x) })
	for _, p := range slices.Compact(all) {
		a.tier(func(k *kind) bool { return k.pod.Priority == p })
	}
	a.tier(func(*kind) bool { return true }) // some may have waited for pods of lower priority to be near to
}

// settle uses the room there is, up to the last relaxation, before any new node is considered. It comes first while claims
// of an earlier pass are on their way: pods that found room then find it again, and mere preferences make no more nodes.
func (a *attempt) settle() {
	a.roomOnly = true
	a.tier(func(*kind) bool { return true })
	a.roomOnly = false
	clear(a.level)
}

// tier packs the kinds that in accepts, first with every preference as a rule, then ever more relaxed.
func (a *attempt) tier(in func(*kind) bool) {
	for {
		var now []*kind
		for i, k := range a.w.kinds {
			if len(a.rest[i]) > 0 && in(k) {
				now = append(now, k)
			}
		}
		before := a.waiting(now)
		a.settleSpread(now)
		lots := a.divide(now)
		a.gather(lots)
		a.useHosts(lots)
		if !a.roomOnly {
			a.open(lots)
		}
		relaxed := false
		for _, k := range now {
			if len(a.rest[k.id]) > 0 && a.level[k.id] < len(k.views)-1 {
				a.level[k.id]++
				relaxed = true
			}
		}
		// What was placed may be what others had to wait for, so the last word is a round that places nothing.
		if left := a.waiting(now); !relaxed && (left == 0 || left == before) {
			a.remember(lots)
			return
		}
	}
}

// waiting counts the pods of the kinds that have no place yet.
func (a *attempt) waiting(list []*kind) int {
	n := 0
	for _, k := range list {
		n += len(a.rest[k.id])
	}
	return n
}

// short reports whether pods stayed without a home that some pool or host could have taken.
func (a *attempt) short() bool {
	for i, k := range a.w.kinds {
		if len(a.rest[i]) > 0 && (a.w.forSome(k.last()) || slices.ContainsFunc(a.w.hosts, func(b *bin) bool {
			return fits(k.need, b.room) > 0 && a.w.onHost(k.last().admit, b) >= 0
		})) {
			return true
		}
	}
	return false
}

func (a *attempt) placements() []plan.Placement {
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
