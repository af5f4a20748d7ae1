package whatif

import (
	"cmp"
	"fmt"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/provisioning/ceiling"
	"joiner.sh/pkg/scheduling/binpack"
)

// Limits are what a search may do.
type Limits struct {
	// Work is how much of it may be done: a question is 400, three more for each node and four for each pod that waits.
	// 0 is for DefaultWork, and less than that for none.
	Work int
	// Accept reports whether the API server would take the NodePool of an edit; nil for one that takes all.
	Accept func(p cluster.Pool) bool
}

// DefaultWork is about a second of one core: in a cluster of 500 nodes thirty questions, which is each edit of a usual
// pod alone, and in a small one as many as pairs take.
const DefaultWork = 60_000

// ForPod finds what would give the pod namespace/name a node, which a pass leaves without. Nothing is asked where it
// has one, or gets one as it is.
func ForPod(s cluster.Snapshot, sells binpack.Offerings, key string, most Limits) Answer {
	i := slices.IndexFunc(s.Pods, func(p cluster.Pod) bool { return p.Key() == key && !p.Virtual })
	if i < 0 || s.Pods[i].NodeName != "" || !s.Pods[i].Unscheduled || !s.Pods[i].Active() || most.Work < 0 {
		return Answer{}
	}
	w := newPlacing(s, sells, key)
	if _, placed := w.answer(s); placed {
		return Answer{}
	}
	group, quick := waitingAlike(s, i), s
	quick.Rules.PackingIterations = cluster.NoIterations
	if len(group.Affinity) == 0 { // else it may wait for others
		quick.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p cluster.Pod) bool {
			return p.NodeName == "" && p.Key() != key && (len(group.Spread) == 0 || !group.has(&p))
		})
	}
	q := newQuestion(s, most, func(family) bool { return true }, w.answer)
	if _, placed := w.answer(quick); !placed { // else others take its place
		q.in, q.sure = quick, &s
	}
	return q.search(podFamilies(s, group))
}

// podFamilies are all edits that could give the pods a node.
func podFamilies(s cluster.Snapshot, group pods) []family {
	return slices.Concat(group.families(s), poolFamilies(s, group.Pod), settingFamilies(s.Rules), refusalFamilies(s),
		classFamilies(s))
}

// waitingAlike are the pods that wait and that the same object makes as pod i.
func waitingAlike(s cluster.Snapshot, i int) pods {
	all := podsAlike(s, func(p *cluster.Pod) bool { return p.NodeName == "" && !p.Virtual })
	out := all[slices.IndexFunc(all, func(x pods) bool { return x.has(&s.Pods[i]) })]
	out.Pod = s.Pods[i]
	return out
}

// podsAlike are the pods that are taken, those together that the same object makes.
func podsAlike(s cluster.Snapshot, take func(p *cluster.Pod) bool) (out []pods) {
	by := map[string]int{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if !take(p) {
			continue
		}
		id := fmt.Sprint(p.Namespace, " ", cmp.Or(p.Controller, p.Name), " ", p.DoNotDisrupt)
		if _, known := by[id]; !known {
			by[id], out = len(out), append(out, pods{Pod: *p, names: map[string]bool{}})
		}
		out[by[id]].names[p.Name] = true
	}
	return out
}

// placing asks the packer about a pod.
type placing struct {
	s      cluster.Snapshot
	sells  binpack.Offerings
	key    string
	hosts  []cluster.StateNode
	stock  *binpack.WhatIf
	before map[int]plan.Plan // without edits, by the iterations of the packer
}

func newPlacing(s cluster.Snapshot, sells binpack.Offerings, key string) *placing {
	return &placing{s: s, sells: sells, key: key, hosts: s.StateNodes(), stock: binpack.NewWhatIfEdited(s, sells),
		before: map[int]plan.Plan{}}
}

// plan is what a pass would do. Where an edit lets EC2 sell more, what is sold is found anew. It is false where nothing
// could take the pod that it is asked for.
func (w *placing) plan(s cluster.Snapshot, about string) (plan.Plan, bool) {
	if len(s.SoldOut) != len(w.s.SoldOut) || !slices.EqualFunc(s.Classes, w.s.Classes,
		func(a, b instancetypes.Class) bool { return len(a.ZoneIDs) == len(b.ZoneIDs) }) {
		return ceiling.LimitPlan(s, binpack.Pods(s)), true
	}
	p, ok := w.stock.PlanEdited(s, about)
	return ceiling.LimitPlan(s, p), ok
}

// answer is where the pod comes to in the snapshot.
func (w *placing) answer(s cluster.Snapshot) (out Outcome, placed bool) {
	p, ok := w.plan(s, w.key)
	if !ok {
		return out, false
	}
	for _, l := range p.Launches {
		if slices.Contains(l.Pods, w.key) {
			out.Brings = fmt.Sprintf("a new %s of NodePool %s at %.4f USD/h", l.Choice.Offer, l.Pool, l.Choice.Price)
			out.landing = landingOf(s, w.sells, l)
		}
	}
	for _, e := range p.Existing {
		if e.Pod == w.key {
			out.Brings = "room on node " + e.Node
			i := slices.IndexFunc(w.hosts, func(h cluster.StateNode) bool { return h.Name() == e.Node })
			out.landing = func(label string) string { return w.hosts[i].Labels()[label] }
		}
	}
	if out.Brings == "" {
		return out, false
	}
	before, known := w.before[s.Rules.PackingIterations]
	if !known {
		unedited := w.s
		unedited.Rules.PackingIterations = s.Rules.PackingIterations
		before, _ = w.plan(unedited, "")
		w.before[s.Rules.PackingIterations] = before
	}
	out.AddsUSD = p.TotalPrice() - before.TotalPrice()
	lost := map[string]bool{w.key: true}
	for _, u := range p.Unplaced {
		lost[u.Pod] = true
	}
	for _, u := range before.Unplaced {
		if !lost[u.Pod] {
			out.Others = append(out.Others, u.Pod)
		}
	}
	slices.Sort(out.Others)
	return out, true
}

// landing tells labels of the node that a pod comes to, empty where it has none or nobody can tell.
type landing func(label string) string

// landingOf is a new node.
func landingOf(s cluster.Snapshot, sells binpack.Offerings, l plan.Launch) landing {
	pool, _ := s.PoolOf(l.Pool)
	known := requirements.FromLabels(l.Labels).AndSet(l.Requirements)
	for _, t := range overlays.ByPool(s, sells)(pool) {
		if t.Name == l.Choice.Type {
			known = known.AndSet(t.Requirements)
		}
	}
	return func(label string) string {
		if v, own := l.Choice.Label(label); own {
			return v
		}
		r, _ := known.Get(label)
		v, _ := r.Single()
		return v
	}
}
