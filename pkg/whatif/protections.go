package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/binpack"
)

// Protection is what keeps nodes from disruption, with its price: what would be saved without it.
type Protection struct {
	Guard string `json:"guard"` // the object, and what of it
	Nodes int    `json:"nodes"` // that it keeps
	// what they cost more than their pods would elsewhere, by deciding again without the guard
	DailyUSD float64 `json:"dailyUSD"`
	// guards that keep the same nodes: without this one alone nothing is saved
	Together []string `json:"together,omitempty"`
}

// String says it in a line.
func (p Protection) String() string {
	out := fmt.Sprintf("%s keeps %d nodes: %.2f USD a day", p.Guard, p.Nodes, p.DailyUSD)
	if len(p.Together) > 0 {
		out += ", together with " + strings.Join(p.Together, ", ")
	}
	return out
}

// guard is one protection, or several of one name, and how to take it away.
type guard struct {
	name  string
	edits map[string]family // the widest is made, by object and field
	on    map[string]bool   // names of the nodes that it may keep
}

// Protections are those of the cluster, the dearest first. by gives guards a name that they are told under together,
// none to those that are left out; nil tells each.
func Protections(s cluster.Snapshot, m disruption.Memory, sells binpack.Offerings, by func(e Edit) string,
	most Limits) (out []Protection) {
	l := newLedger(s, m, sells, most)
	all := l.listGuards(by)
	for i, g := range all {
		nodes, usd := l.without(g.on, g)
		p := Protection{Guard: g.name, Nodes: nodes, DailyUSD: 24 * usd}
		if nodes == 0 {
			p = l.together(all, i)
		}
		if p.Nodes > 0 {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b Protection) int {
		return cmp.Or(cmp.Compare(b.DailyUSD, a.DailyUSD), strings.Compare(a.Guard, b.Guard))
	})
	return out
}

// listGuards are what may keep the nodes that stay.
func (l *ledger) listGuards(by func(e Edit) string) (out []guard) {
	if by == nil {
		by = guardID
	}
	at := map[string]int{}
	for _, h := range l.s.StateNodes() {
		for _, f := range guardFamilies(l.s, h) {
			if !l.kept[h.Name()] || f.count == 0 || by(f.widest()) == "" {
				continue
			}
			id, name := guardID(f.widest()), by(f.widest())
			i, known := at[name]
			if !known {
				i, at[name] = len(out), len(out)
				out = append(out, guard{name, map[string]family{}, map[string]bool{}})
			}
			if out[i].on[h.Name()] = true; f.count > out[i].edits[id].count {
				out[i].edits[id] = f
			}
		}
	}
	return out
}

// guardID names the object and the field of an edit.
func guardID(e Edit) string { return e.Object() + " " + e.Field }

// guardFamilies are the edits that take what may keep the node away.
func guardFamilies(s cluster.Snapshot, h cluster.StateNode) []family {
	on := podsOn(s, h.Name())
	all := protectionFamilies(s, h, on)
	for _, p := range on {
		all = append(all, slices.DeleteFunc(p.spreadFamilies(), func(f family) bool { return f.count > 1 })...)
	}
	for i, p := range s.Pools {
		for _, r := range p.Requirements.All() {
			if p.Name == h.Pool() {
				all = append(all, pool{p, i}.minValuesFamily(r))
			}
		}
	}
	return all
}

// ledger asks what goes, as long as there is work.
type ledger struct {
	s     cluster.Snapshot
	m     disruption.Memory
	sells binpack.Offerings
	cache disruption.Cache
	left  int
	kept  map[string]bool // nodes that stay with all guards
}

func newLedger(s cluster.Snapshot, m disruption.Memory, sells binpack.Offerings, most Limits) *ledger {
	l := &ledger{s: s, m: m, sells: sells, left: cmp.Or(most.Work, 10*DefaultWork), kept: map[string]bool{}}
	for _, h := range s.StateNodes() {
		if h.Claim != nil && h.Node != nil && !h.MarkedForDeletion() {
			_, goes := l.ask(s, h.Claim.Name)
			l.kept[h.Name()] = !goes
		}
	}
	return l
}

func (l *ledger) ask(s cluster.Snapshot, claim string) (disruption.Command, bool) {
	if l.left -= 400 + 3*len(s.Nodes); l.left < 0 {
		return disruption.Command{}, false
	}
	return disruption.AskAbout(s, l.m, l.sells, &l.cache, claim)
}

// without is how many of the nodes would go without the guards, and what that saves, USD per hour: one after the other,
// each with those before gone.
func (l *ledger) without(on map[string]bool, guards ...guard) (nodes int, usd float64) {
	s := withoutGuards(l.s, guards)
	for _, h := range l.s.StateNodes() {
		if !on[h.Name()] || !l.kept[h.Name()] {
			continue
		}
		if c, ok := l.ask(s, h.Claim.Name); ok {
			nodes, usd = nodes+1, usd+c.SavesUSD
			s = l.after(s, h)
		}
	}
	return nodes, usd
}

// withoutGuards is the cluster without the guards.
func withoutGuards(s cluster.Snapshot, guards []guard) cluster.Snapshot {
	var edits []Edit
	for _, g := range guards {
		for _, id := range slices.Sorted(maps.Keys(g.edits)) {
			edits = append(edits, g.edits[id].widest())
		}
	}
	return Change{Edits: edits}.Apply(s)
}

// after is the cluster when the node is gone. Its pods are where there is room; those that new nodes are bought for are
// gone with these, of which nobody else uses the rest.
func (l *ledger) after(s cluster.Snapshot, h cluster.StateNode) cluster.Snapshot {
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n cluster.Node) bool { return n.Name == h.Node.Name })
	s.Claims = slices.DeleteFunc(slices.Clone(s.Claims), func(c cluster.Claim) bool { return c.Name == h.Claim.Name })
	s.Pods = slices.DeleteFunc(slices.Clone(s.Pods),
		func(p cluster.Pod) bool { return p.NodeName == h.Node.Name && !p.Reschedulable() })
	waits := map[string]bool{}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.NodeName == h.Node.Name {
			p.NodeName, p.Unscheduled, waits[p.Key()] = "", true, true
		}
	}
	s.Rules.PackingIterations = cluster.NoIterations
	to := binpack.PodsFrom(s, l.sells).NodeByPod()
	s.Rules = l.s.Rules
	s.Pods = slices.DeleteFunc(s.Pods, func(p cluster.Pod) bool { return waits[p.Key()] && to[p.Key()] == "" })
	for i := range s.Pods {
		if p := &s.Pods[i]; waits[p.Key()] {
			p.NodeName, p.Unscheduled = to[p.Key()], false
		}
	}
	return s
}

// together is the guard with the others that keep the same nodes, as few as save something.
func (l *ledger) together(all []guard, i int) Protection {
	others := slices.DeleteFunc(slices.Clone(all), func(g guard) bool {
		return g.name == all[i].name || !slices.ContainsFunc(slices.Collect(maps.Keys(g.on)),
			func(node string) bool { return all[i].on[node] })
	})
	saves := func(with []guard) (int, float64) { return l.without(all[i].on, append([]guard{all[i]}, with...)...) }
	if n, _ := saves(others); n == 0 || len(others) == 0 {
		return Protection{}
	}
	if n, _ := l.without(all[i].on, others...); n > 0 {
		return Protection{} // they keep the nodes without it
	}
	for k := 0; k < len(others); {
		if n, _ := saves(without(others, k)); n > 0 {
			others = without(others, k)
		} else {
			k++
		}
	}
	nodes, usd := saves(others)
	p := Protection{Guard: all[i].name, Nodes: nodes, DailyUSD: 24 * usd}
	for _, g := range others {
		p.Together = append(p.Together, g.name)
	}
	return p
}
