// Package pack decides where pods without a node go: onto nodes that exist or are on their way, and onto new ones.
//
// It knows the rules of the Kubernetes scheduler that matter for it (spec core.md §2 and §3) and prices. It refuses to know
// how anything is launched, and it never guesses: a pod with a constraint it does not know is unplaced with that reason.
// Pods that are alike form one kind, so the work grows with kinds, offers and nodes and hardly with pods.
//
// The path of a pod: demand.go makes kinds of pods, relax.go their views from strict to relaxed, domain.go divides them over
// zones and other domains, host.go uses the room there is, open.go chooses new nodes by price, launch.go writes them
// down, reason.go explains who stays without a home.
package pack

import (
	"cmp"
	"slices"
	"strings"

	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/plan"
)

// AnnotationNominated names, comma separated, the pods (namespace/name) that a NodeClaim was made for.
const AnnotationNominated = "joiner.sh/nominated-pods"

// mostRestarts bounds how often a pass starts again because a domain turned out to hold fewer pods than it was given.
const mostRestarts = 6

// market tells the instance types that a class may launch.
type market func(class string) []catalog.Type

// Pods decides where every pod without a place goes. It depends on nothing but the snapshot: equal snapshots give equal
// plans, in whatever order their lists are.
func Pods(s cluster.Snapshot) plan.Plan {
	return pods(s, func(class string) []catalog.Type {
		c, ok := s.ClassOf(class)
		if !ok {
			return nil
		}
		return catalog.Resolve(s.Catalog, c, s.SoldOut, s.Now)
	})
}

// pods is Pods with the market given.
func pods(s cluster.Snapshot, sells market) plan.Plan {
	w := survey(s, sells)
	best := w.pass(false)
	if best.short() && w.priorities() > 1 {
		best = w.pass(true)
	}
	out := plan.Plan{Skipped: w.skipped, Unplaced: w.unmodelled}
	out.Launches = best.launches()
	out.Existing = best.placements()
	out.Unplaced = append(out.Unplaced, best.unplaced()...)
	slices.SortFunc(out.Unplaced, func(a, b plan.Unplaced) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// pass packs everything, at once or one priority after the other. It starts again while some domain (a zone, say) takes
// fewer pods than planned, so that the others are not filled beyond what a spread allows.
func (w *world) pass(byPriority bool) *attempt {
	caps := map[place]int{}
	for range mostRestarts {
		a := w.attempt(caps)
		a.run(byPriority)
		if !a.learn(caps) {
			a.trim()
			return a
		}
	}
	a := w.attempt(caps)
	a.run(byPriority)
	a.trim()
	return a
}

// place is a kind in a domain of a topology key.
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
	blocked  []map[string]bool // by kind: why it was held back, beside what a pool says
	stuck    map[place]int     // pods that a domain was given and could not take
	landed   map[place]int     // pods of a kind in a domain
}

func (w *world) attempt(caps map[place]int) *attempt {
	a := &attempt{
		w: w, caps: caps, level: make([]int, len(w.kinds)), rest: make([][]string, len(w.kinds)),
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
		lots := a.divide(now)
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

// short reports whether pods stayed without a home that some pool could have taken.
func (a *attempt) short() bool {
	for i, k := range a.w.kinds {
		if len(a.rest[i]) > 0 && a.w.cheapest(k.last(), nil) < noPrice {
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
