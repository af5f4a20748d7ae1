package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/provisioning/ceiling"
	"joiner.sh/pkg/scheduling/binpack"
)

// Limits bounds a search.
type Limits struct {
	// Work caps what may be done. A question is 400, three more for each node, four for each pod that waits and one for
	// 40 instance types of each NodePool.
	Work int
	// Accept reports whether the API server would take the NodePool of an edit; nil for one that takes all.
	Accept func(p cluster.Pool) bool
}

// DefaultWork is about a second of one core: in a cluster of 500 nodes thirty questions, which is each edit of a usual
// pod alone, and in a small one as many as pairs take.
const DefaultWork = 64_000

// ForPod finds what would give the pod namespace/name a node, which a pass leaves without. Nothing is asked where it
// has one, or gets one as it is.
func ForPod(s cluster.Snapshot, sells binpack.Offerings, key string, most Limits) Answer {
	i := slices.IndexFunc(s.Pods, func(p cluster.Pod) bool { return p.Key() == key && !p.Virtual })
	if i < 0 || s.Pods[i].NodeName != "" || !s.Pods[i].Unscheduled || !s.Pods[i].Active() || most.Work < 0 {
		return Answer{}
	}
	pl := newPlacing(s, sells, key)
	if _, placed := pl.answer(s); placed {
		return Answer{}
	}
	group, quick := waitingAlike(s, i), s
	quick.Rules.PackingIterations = cluster.NoIterations
	if len(group.Affinity) == 0 { // else it may wait for others
		quick.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p cluster.Pod) bool {
			return p.NodeName == "" && p.Key() != key && (len(group.Spread) == 0 || !group.has(&p))
		})
	}
	q := newQuestion(s, most, func(family) bool { return true }, pl.answer)
	if _, placed := pl.answer(quick); !placed { // else others take its place
		q.in, q.sure = quick, &s
	}
	return q.search(podFamilies(s, group))
}

// podFamilies are all edits that could give the pods a node.
func podFamilies(s cluster.Snapshot, group pods) []family {
	return slices.Concat(group.families(s), poolFamilies(s, group.Pod), settingFamilies(s.Rules), refusalFamilies(s),
		volumeFamilies(s, group.Pod), classFamilies(s))
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

// podsOn are the pods on the node, those together that the same object makes.
func podsOn(s cluster.Snapshot, node string) []pods {
	return podsAlike(s, func(p *cluster.Pod) bool {
		return p.NodeName == node && p.Active() && p.Owner != cluster.OwnerDaemonSet && p.Owner != cluster.OwnerNode
	})
}

// selected returns how many of the pods the budget is about.
func selected(b cluster.PodDisruptionBudget, on []pods) (n int64) {
	for _, p := range on {
		if p.Namespace == b.Namespace && b.Selector.Matches(p.Labels) {
			n += int64(len(p.names))
		}
	}
	return n
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

// plan returns what a pass would do, with what EC2 sells found anew if edited. False: nothing could take the pod.
func (pl *placing) plan(s cluster.Snapshot, about string) (plan.Plan, bool) {
	if len(s.Unavailable) != len(pl.s.Unavailable) || !slices.EqualFunc(s.Classes, pl.s.Classes,
		func(a, b instancetypes.Class) bool {
			return len(a.ZoneIDs) == len(b.ZoneIDs) && a.EphemeralBytes == b.EphemeralBytes
		}) {
		return ceiling.LimitPlan(s, binpack.Pods(s)), true
	}
	p, ok := pl.stock.PlanEdited(s, about)
	return ceiling.LimitPlan(s, p), ok
}

// answer returns where the pod comes to in the snapshot.
func (pl *placing) answer(s cluster.Snapshot) (out ChangeEffect, placed bool) {
	p, ok := pl.plan(s, pl.key)
	if !ok {
		return out, false
	}
	for _, l := range p.Launches {
		if slices.Contains(l.Pods, pl.key) {
			out.Brings = fmt.Sprintf("a new %s of NodePool %s at %.4f USD/h",
				l.Choice.OfferingKey, l.Pool, l.Choice.Price)
			out.landing = landingOf(s, pl.sells, l)
		}
	}
	for _, e := range p.Existing {
		if e.Pod == pl.key {
			out.Brings = "room on node " + e.Node
			i := slices.IndexFunc(pl.hosts, func(node cluster.StateNode) bool { return node.Name() == e.Node })
			out.landing = func(label string) string { return pl.hosts[i].Labels()[label] }
		}
	}
	if out.Brings == "" {
		return out, false
	}
	before, known := pl.before[s.Rules.PackingIterations]
	if !known {
		unedited := pl.s
		unedited.Rules.PackingIterations = s.Rules.PackingIterations
		before, _ = pl.plan(unedited, "")
		pl.before[s.Rules.PackingIterations] = before
	}
	out.AddsUSD = p.TotalPrice() - before.TotalPrice()
	name := func(u plan.Unplaced) string { return u.Pod }
	notIn := func(all, known []plan.Unplaced) []string {
		has := lists.Set(known, name)
		pods := lists.Of(lists.Where(all, func(u plan.Unplaced) bool { return u.Pod != pl.key && !has[u.Pod] }), name)
		slices.Sort(pods)
		return pods
	}
	out.Others, out.Displaced = notIn(before.Unplaced, p.Unplaced), notIn(p.Unplaced, before.Unplaced)
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

// refusalFamilies lift what EC2 refuses for a reason that its owner can mend: quotas and addresses.
func refusalFamilies(s cluster.Snapshot) (out []family) {
	codes := lists.Set(s.Unavailable, func(u instancetypes.UnavailableOffering) string { return u.Why })
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		is := func(u instancetypes.UnavailableOffering) bool { return u.Why == code }
		out = append(out, single("", target{KindEC2, "", code}.edit(pathOf("refusals"),
			fmt.Sprint(lists.Count(s.Unavailable, is)), "0", func(s *cluster.Snapshot) {
				s.Unavailable = slices.DeleteFunc(slices.Clone(s.Unavailable), is)
			}, nil), awserrors.IsQuota(code)))
	}
	return out
}

// mostVolumeGiB is the largest gp2 volume. With half of it and double the same is found by as many questions.
const mostVolumeGiB = 16 << 10

// volumeFamilies have the volume of an EC2NodeClass that pods write to hold more than the pod asks for.
func volumeFamilies(s cluster.Snapshot, forPod cluster.Pod) (out []family) {
	need := forPod.Need.Get(resources.Ephemeral) >> 30
	for i, c := range s.Classes {
		size := cmp.Or(c.EphemeralBytes>>30, 20) // where it says nothing
		at := slices.IndexFunc(c.Disks, func(d instancetypes.Disk) bool { return d.GiB == size })
		if need == 0 || at < 0 {
			continue
		}
		field := pathOf("spec.blockDeviceMappings", "[deviceName="+c.Disks[at].Device+"]", "ebs.volumeSize")
		was := max(size, need)
		out = append(out, inSteps("", was, 1, mostVolumeGiB-was, func(to int64) Edit {
			return target{"EC2NodeClass", "", c.Name}.edit(field, fmt.Sprintf("%dGi", size), fmt.Sprintf("%dGi", to),
				func(s *cluster.Snapshot) {
					c := &s.Classes[i]
					c.EphemeralBytes, c.Disks = to<<30, slices.Clone(c.Disks)
					c.Disks[at].GiB = to
				}, nil)
		}))
	}
	return out
}

// classFamilies have an EC2NodeClass ready that is not, in each zone where it has no subnet at all.
func classFamilies(s cluster.Snapshot) (out []family) {
	for i, c := range s.Classes {
		out = append(out, single("", target{"EC2NodeClass", "", c.Name}.edit(pathOf("status.conditions", "[type=Ready]"),
			cmp.Or(c.Message, "False"), "True", func(s *cluster.Snapshot) {
				if s.Classes[i].Ready = true; len(c.ZoneIDs) == 0 {
					s.Classes[i].ZoneIDs = s.Catalog.Zones
				}
				for j := range s.Pools {
					if p := &s.Pools[j]; p.Class == c.Name && strings.Contains(p.Message, "EC2NodeClass "+c.Name) {
						p.Ready = true
					}
				}
			}, nil), !c.Ready, !c.Unseen))
	}
	return out
}
