package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/provisioning/staticcapacity"
	"joiner.sh/pkg/scheduling/binpack"
)

// ForNode finds what would let the node of the NodeClaim go. Nothing is asked where it goes as it is.
func ForNode(s cluster.Snapshot, m disruption.Memory, sells binpack.Offerings, claim string, most Limits) Answer {
	if _, ok := nodeOf(s, claim); !ok || most.Work < 0 {
		return Answer{}
	}
	c := &disruption.Cache{}
	q := newQuestion(s, most, func(f family) bool { return f.launches },
		func(s cluster.Snapshot) (ChangeEffect, bool) { return goes(s, m, sells, c, claim) })
	if _, ok := q.answer(s); ok {
		return Answer{}
	}
	return q.search(nodeFamilies(s, claim))
}

// nodeOf is the node of a NodeClaim that has one and is not leaving.
func nodeOf(s cluster.Snapshot, claim string) (cluster.StateNode, bool) {
	return lists.Find(s.StateNodes(), func(node cluster.StateNode) bool {
		return node.Claim != nil && node.Node != nil && node.Claim.Name == claim && !node.MarkedForDeletion()
	})
}

// nodeFamilies are all edits that could let the node go.
func nodeFamilies(s cluster.Snapshot, claim string) []family {
	node, _ := nodeOf(s, claim)
	on := podsOn(s, node.Name())
	all := append(protectionFamilies(s, node, on), paybackFamily(s.Rules))
	all = append(all, poolFamilies(s, cluster.Pod{})...)
	for _, p := range lists.Where(on, func(p pods) bool { return p.Reschedulable() }) {
		all = append(all, p.families(s)...)
	}
	return all
}

// goes returns the fate of the node, if disruption may take it.
func goes(s cluster.Snapshot, m disruption.Memory, sells binpack.Offerings, cache *disruption.Cache, claim string) (
	out ChangeEffect, ok bool) {
	if slices.ContainsFunc(staticcapacity.SurplusNodes(s), func(r plan.Removal) bool { return r.Claim == claim }) {
		return ChangeEffect{Brings: "its NodePool has one node less"}, true
	}
	c, ok := disruption.AskAbout(s, m, sells, cache, claim)
	if !ok {
		return out, false
	}
	out.Brings, out.AddsUSD = "it goes without replacement", -c.SavesUSD
	for i, l := range c.Launches {
		if out.Brings += ", " + l.Choice.OfferingKey.String(); i == 0 {
			out.Brings, out.landing = "it goes for "+l.Choice.OfferingKey.String(), landingOf(s, sells, l)
		}
	}
	out.Brings += fmt.Sprintf(", which saves %.2f USD a month", c.SavesUSD*instancetypes.HoursPerMonth)
	return out, true
}

// protectionFamilies are edits of what keeps the node from disruption whatever it would save, as it keeps most.
func protectionFamilies(s cluster.Snapshot, node cluster.StateNode, on []pods) (out []family) {
	at := pathOf(atAnnotations, v1.AnnotationDoNotDisrupt)
	for i, n := range s.Nodes {
		if was := n.Annotations[v1.AnnotationDoNotDisrupt]; n.Name == node.Name() && was != "" {
			out = append(out, single("", target{"Node", "", n.Name}.edit(at, was, "", func(s *cluster.Snapshot) {
				s.Nodes[i].Annotations = withKey(s.Nodes[i].Annotations, v1.AnnotationDoNotDisrupt)
			})))
		}
	}
	for _, p := range on {
		e := p.edit(at, p.DoNotDisrupt, "", func(p *cluster.Pod) { p.DoNotDisrupt = "" })
		out = append(out, single("", e, p.DoNotDisrupt != ""))
	}
	for i, b := range s.Budgets {
		was := int64(b.DisruptionsAllowed)
		out = append(out, inSteps("", was, 1, selected(b, on), func(to int64) Edit {
			return target{"PodDisruptionBudget", b.Namespace, b.Name}.edit(pathOf("allowed disruptions"), fmt.Sprint(was),
				fmt.Sprint(to), func(s *cluster.Snapshot) {
					s.Budgets[i].DisruptionsAllowed, s.Budgets[i].FullyBlocking = int32(to), false
				}, nil)
		}))
	}
	for i, p := range s.Pools {
		if p.Name == node.Pool() {
			out = append(out, pool{p, i}.disruptionFamilies()...)
		}
	}
	return out
}

// disruptionFamilies are all edits of what the pool says about disruption.
func (p pool) disruptionFamilies() (out []family) {
	d := p.Disruption
	one := func(is bool, at path, from, to string, change func(*cluster.Pool)) {
		out = append(out, single(p.Name, p.edit(at, from, to, change), is))
	}
	all, yes := string(v1.ConsolidationWhenEmptyOrUnderutilized), true
	one(d.Policy != all, pathOf(atDisruption, "consolidationPolicy"), d.Policy, all,
		func(p *cluster.Pool) { p.Disruption.Policy = all })
	one(d.Never, pathOf(atDisruption, "consolidateAfter"), "Never", "0s",
		func(p *cluster.Pool) { p.Disruption.Never, p.Disruption.After = false, 0 })
	out = append(out, p.shortened(d.After, 0, func(is, to string, n time.Duration) Edit {
		return p.edit(pathOf(atDisruption, "consolidateAfter"), is, to,
			func(p *cluster.Pool) { p.Disruption.After = n })
	}))
	for i, b := range d.Budgets {
		out = append(out, p.budgetFamilies(i, b)...)
	}
	one(d.ReportOnly && d.Message == "", pathOf(atAnnotations, v1.AnnotationDisruption), "report", "act",
		func(p *cluster.Pool) { p.Disruption.ReportOnly = false })
	out = append(out, p.lowered(v1.AnnotationMinSavingsUSD, d.SavesUSD, 1000,
		func(p *cluster.Pool, n float64) { p.Disruption.SavesUSD = n }),
		p.lowered(v1.AnnotationMinSavingsPercent, d.SavesPercent, 10,
			func(p *cluster.Pool, n float64) { p.Disruption.SavesPercent = n }))
	one(d.SpotToSpot == nil || !*d.SpotToSpot, pathOf(atAnnotations, v1.AnnotationSpotToSpot), "", "true",
		func(p *cluster.Pool) { p.Disruption.SpotToSpot = &yes })
	return append(out, inSteps(p.Name, p.Replicas, -1, p.Replicas, func(to int64) Edit { // 0 but for static ones
		return p.edit(pathOf("spec.replicas"), fmt.Sprint(p.Replicas), fmt.Sprint(to),
			func(p *cluster.Pool) { p.Replicas = to }, to)
	}))
}

// shortened is a time of the pool that is made shorter by minutes, to the least of them.
func (p pool) shortened(was time.Duration, least int64, to func(is, to string, n time.Duration) Edit) family {
	count := int64((was + time.Minute - 1) / time.Minute)
	return inSteps(p.Name, count, -1, count-least, func(i int64) Edit {
		n := time.Duration(i) * time.Minute
		return to(was.String(), n.String(), n)
	})
}

// lowered is a threshold of an annotation that is lowered, in so many steps for one.
func (p pool) lowered(key string, was, parts float64, set func(*cluster.Pool, float64)) family {
	count := int64(was*parts + 0.999)
	return inSteps(p.Name, count, -1, count, func(n int64) Edit {
		to := float64(n) / parts
		return p.edit(pathOf(atAnnotations, key), formatDecimal(was), formatDecimal(to),
			func(p *cluster.Pool) { set(p, to) })
	})
}

// budgetFamilies raise the nodes of a budget, or shorten its hours.
func (p pool) budgetFamilies(i int, b cluster.NodeBudget) []family {
	edit := func(field, from, to string, change func(*cluster.NodeBudget)) Edit {
		return p.edit(pathOf(atDisruption, "budgets", elementAt(i), field), from, to, func(p *cluster.Pool) {
			p.Disruption.Budgets = slices.Clone(p.Disruption.Budgets)
			change(&p.Disruption.Budgets[i])
		})
	}
	number, percent := strings.CutSuffix(b.Nodes, "%")
	was, _ := strconv.ParseInt(number, 10, 64)
	return []family{inSteps(p.Name, was, 1, mostNodes, func(n int64) Edit {
		to := fmt.Sprint(n)
		if percent {
			to = fmt.Sprintf("%d%%", min(100, n))
		}
		return edit("nodes", b.Nodes, to, func(b *cluster.NodeBudget) { b.Nodes = to })
	}), p.shortened(b.Duration, 1, func(is, to string, n time.Duration) Edit {
		return edit("duration", is, to, func(b *cluster.NodeBudget) { b.Duration = n })
	})}
}

// paybackFamily has moves pay within a longer time.
func paybackFamily(settings cluster.Settings) family {
	was := cmp.Or(settings.ConsolidationPayback, time.Hour)
	return inSteps("", int64(was/time.Hour), 1, mostHours-int64(was/time.Hour), func(n int64) Edit {
		to := time.Duration(n) * time.Hour
		return setting("consolidationPayback", was.String(), to.String(),
			func(settings *cluster.Settings) { settings.ConsolidationPayback = to })
	})
}

// Protection is a guard that keeps nodes from disruption, with its price: what would be saved without it.
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

// Protections returns the protections of the cluster, the dearest first.
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

// listGuards returns the guards that may keep the nodes that stay.
func (l *ledger) listGuards(by func(e Edit) string) (out []guard) {
	if by == nil {
		by = guardID
	}
	at := map[string]int{}
	for _, node := range l.s.StateNodes() {
		for _, f := range guardFamilies(l.s, node) {
			if !l.kept[node.Name()] || f.count == 0 || by(f.widest()) == "" {
				continue
			}
			id, name := guardID(f.widest()), by(f.widest())
			i, known := at[name]
			if !known {
				i, at[name] = len(out), len(out)
				out = append(out, guard{name, map[string]family{}, map[string]bool{}})
			}
			if out[i].on[node.Name()] = true; f.count > out[i].edits[id].count {
				out[i].edits[id] = f
			}
		}
	}
	return out
}

// guardID names the object and the field of an edit.
func guardID(e Edit) string { return e.Object() + " " + e.Field }

// guardFamilies are the edits that take what may keep the node away.
func guardFamilies(s cluster.Snapshot, node cluster.StateNode) []family {
	on := podsOn(s, node.Name())
	all := protectionFamilies(s, node, on)
	for _, p := range on {
		all = append(all, slices.DeleteFunc(p.spreadFamilies(), func(f family) bool { return f.count > 1 })...)
	}
	for i, p := range s.Pools {
		for _, r := range p.Requirements.All() {
			if p.Name == node.Pool() {
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
	for _, node := range s.StateNodes() {
		if node.Claim != nil && node.Node != nil && !node.MarkedForDeletion() {
			_, goes := l.ask(s, node.Claim.Name)
			l.kept[node.Name()] = !goes
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

// without returns how many of the nodes go without the guards, one after the other, and what that saves, USD per hour.
func (l *ledger) without(on map[string]bool, guards ...guard) (nodes int, usd float64) {
	s := withoutGuards(l.s, guards)
	for _, node := range l.s.StateNodes() {
		if !on[node.Name()] || !l.kept[node.Name()] {
			continue
		}
		if c, ok := l.ask(s, node.Claim.Name); ok {
			nodes, usd = nodes+1, usd+c.SavesUSD
			s = l.after(s, node)
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
func (l *ledger) after(s cluster.Snapshot, node cluster.StateNode) cluster.Snapshot {
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n cluster.Node) bool { return n.Name == node.Node.Name })
	s.Claims = slices.DeleteFunc(slices.Clone(s.Claims), func(c cluster.Claim) bool {
		return c.Name == node.Claim.Name
	})
	moved := lists.Where(s.Pods, func(p cluster.Pod) bool { return p.NodeName == node.Node.Name && p.Reschedulable() })
	others := slices.DeleteFunc(slices.Clone(s.Pods), func(p cluster.Pod) bool { return p.NodeName == node.Node.Name })
	for i := range moved {
		moved[i].NodeName, moved[i].Unscheduled = "", true
	}
	s.Pods, s.Rules.PackingIterations = slices.Concat(others, moved), cluster.NoIterations
	to := binpack.PodsFrom(s, l.sells).NodeByPod()
	for i := range moved {
		moved[i].NodeName, moved[i].Unscheduled = to[moved[i].Key()], false
	}
	placed := lists.Where(moved, func(p cluster.Pod) bool { return p.NodeName != "" })
	s.Pods, s.Rules = slices.Concat(others, placed), l.s.Rules
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
	return Protection{Guard: all[i].name, Nodes: nodes, DailyUSD: 24 * usd,
		Together: lists.Of(others, func(g guard) string { return g.name })}
}
