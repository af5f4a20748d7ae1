package workload

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/plan"
)

// notWaiting is the reason of pods that no plan speaks of.
const notWaiting = "it waits for no node: it has ended, is being deleted or preempting, or belongs to a DaemonSet or to a node itself"

// whyNotWaiting says why no plan speaks of a pod with the spec.
func whyNotWaiting(s corev1.PodSpec) string {
	opts := func(e corev1.NodeSelectorRequirement) bool {
		return e.Key == api.LabelNodePool && e.Operator == corev1.NodeSelectorOpDoesNotExist
	}
	a := s.Affinity
	if a == nil || a.NodeAffinity == nil {
		return notWaiting
	}
	var terms []corev1.NodeSelectorTerm
	if r := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		terms = slices.Clone(r.NodeSelectorTerms)
	}
	for _, p := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		terms = append(terms, p.Preference)
	}
	if slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(t.MatchExpressions, opts)
	}) {
		return "its node affinity asks for a node of no NodePool (" + api.LabelNodePool + " DoesNotExist): it waits for a node group"
	}
	return notWaiting
}

// FromPlan says in groups what the plan says in pods. Claims and nodes keep the order of the plan, groups without a
// home that of the file. Measurements are left to the caller.
func FromPlan(f File, p plan.Plan) Placement {
	names := f.IndexNames()
	out, seen := placedGroups(p, names.GroupOf)
	out.Workload, out.Pods = f.Name, f.Pending()
	out.Unplaced = f.unplacedByGroup(p.Unplaced, names.GroupOf, seen)
	out.SetBound(p.LowerBoundUSD)
	return out
}

// SummarizePlan says a plan in groups when there is no workload file: each pod, given by its key namespace/name, counts
// for what group says. Pods are those that wait. Groups without a place are sorted. Measurements are left to the
// caller.
func SummarizePlan(name string, pods []string, group func(key string) string, p plan.Plan) Placement {
	out, seen := placedGroups(p, group)
	out.Workload, out.Pods = name, len(pods)
	var f File
	waiting := map[string]int{}
	for _, pod := range pods {
		waiting[group(pod)]++
	}
	for _, g := range slices.Sorted(maps.Keys(waiting)) {
		f.Groups = append(f.Groups, PodGroup{Name: g, Count: waiting[g]})
	}
	out.Unplaced = f.unplacedByGroup(p.Unplaced, group, seen)
	out.SetBound(p.LowerBoundUSD)
	return out
}

// placedGroups is the part of a placement about pods that have a place, and how many those are by group.
func placedGroups(p plan.Plan, group func(key string) string) (out Placement, seen map[string]int) {
	out = Placement{Tool: "joiner", NodeClaims: []NodeClaim{}, OnExisting: []OnNode{}, Unplaced: []Unplaced{}}
	seen = map[string]int{}
	for _, l := range p.Launches {
		c := NodeClaim{
			NodePool: l.Pool, InstanceType: l.Choice.Type, Zone: l.Choice.Zone, CapacityType: l.Choice.CapacityType,
			HourlyUSD: l.Choice.Price, NodeUSD: l.Choice.NodeUSD,
			DeclaredUSD: l.Choice.DeclaredUSD, TypeOptions: l.Types, Pods: map[string]int{},
		}
		for _, pod := range l.Pods {
			c.Pods[group(pod)]++
		}
		countPods(seen, c.Pods)
		out.NodeClaims = append(out.NodeClaims, c)
		out.HourlyUSD += c.HourlyUSD
	}
	on := map[string]map[string]int{}
	for _, e := range p.Existing {
		if on[e.Node] == nil {
			on[e.Node] = map[string]int{}
		}
		on[e.Node][group(e.Pod)]++
	}
	for _, node := range slices.Sorted(maps.Keys(on)) {
		countPods(seen, on[node])
		out.OnExisting = append(out.OnExisting, OnNode{Node: node, Pods: on[node]})
	}
	return out, seen
}

func countPods(into, from map[string]int) {
	for g, n := range from { // sums do not depend on the order
		into[g] += n
	}
}

// unplacedByGroup lists what was not placed by group; seen counts what was.
func (f File) unplacedByGroup(list []plan.Unplaced, group func(key string) string, seen map[string]int) []Unplaced {
	byGroup := map[string]*Unplaced{}
	for _, u := range list {
		g := group(u.Pod)
		if byGroup[g] == nil {
			byGroup[g] = &Unplaced{Group: g, Pod: u.Pod}
		}
		byGroup[g].Count++
		for _, why := range u.Why {
			if !slices.Contains(byGroup[g].Reasons, why) {
				byGroup[g].Reasons = append(byGroup[g].Reasons, why)
			}
		}
	}
	out := []Unplaced{}
	add := func(group string, count int, why string) {
		u := cmp.Or(byGroup[group], &Unplaced{Group: group})
		if rest := count - seen[group] - u.Count; rest > 0 {
			u.Count += rest
			u.Reasons = append(u.Reasons, why)
		}
		if u.Count > 0 {
			out = append(out, *u)
		}
	}
	for _, g := range f.Groups {
		add(g.Name, g.Count, whyNotWaiting(g.Pod.Spec))
	}
	for i := range f.Pods {
		add(PodKey(&f.Pods[i]), 1, whyNotWaiting(f.Pods[i].Spec))
	}
	for i := range f.Buffers {
		add(BufferGroup(&f.Buffers[i]), 0, notWaiting) // only what the plan speaks of
	}
	return out
}

// SetBound fills in the bound, in USD per hour, and the gap to it. No bound is known when it is 0, but where nothing is
// bought nothing can be saved.
func (p *Placement) SetBound(usd float64) {
	p.LowerBoundUSD, p.Gap = usd, nil
	if gap := 0.0; usd > 0 || p.HourlyUSD == 0 {
		if usd > 0 {
			gap = p.HourlyUSD/usd - 1
		}
		p.Gap = &gap
	}
}
