package disruption

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/plan"
	"joiner/pkg/model/requirements"
	"joiner/pkg/model/resources"
)

// siteOf is the node that a launch will be if it gets its choice.
func (v *state) siteOf(l plan.Launch, name string) *simNode {
	x := &simNode{name: name, labels: map[string]string{v1.LabelNodePool: l.Pool}, taints: l.Taints}
	p, _ := v.s.PoolOf(l.Pool)
	t, _ := v.typeIn(p, l.Choice.Type)
	for _, labels := range []map[string]string{t.Requirements.Labels(), l.Labels, {
		corev1.LabelTopologyZone: l.Choice.Zone, v1.LabelCapacityType: l.Choice.CapacityType, corev1.LabelInstanceTypeStable: l.Choice.Type,
	}} {
		maps.Copy(x.labels, labels)
	}
	x.all = t.Allocatable
	kept := l.Requests // of its pods and daemons
	for _, p := range v.podsBy(l.Pods) {
		kept = kept.Sub(p.Need)
	}
	x.free = x.all.Sub(kept.Max(resources.List{}))
	return x
}

// podOf is the pod of that key, nil when there is none.
func (v *state) podOf(key string) *cluster.Pod {
	if v.podBy == nil {
		v.podBy = make(map[string]*cluster.Pod, len(v.s.Pods))
		for i := range v.s.Pods {
			v.podBy[v.s.Pods[i].Key()] = &v.s.Pods[i]
		}
	}
	return v.podBy[key]
}

// podsBy are the pods of those keys that there are.
func (v *state) podsBy(keys []string) (out []*cluster.Pod) {
	for _, key := range keys {
		if p := v.podOf(key); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// nodeAdmits reports whether labels, taints and the pod's volumes let it onto the node.
func nodeAdmits(x *simNode, p *cluster.Pod) bool {
	return nodeSelected(x, p) && meetsAny(x, p.VolumeZones) && len(cluster.Untolerated(x.taints, p.Tolerations)) == 0
}

// nodeSelected reports whether the node is one of those that the pod asks for. Where its volumes are does not count: a spread looks at what pods ask for.
func nodeSelected(x *simNode, p *cluster.Pod) bool {
	for k, value := range p.NodeSelector {
		if has, ok := x.labels[k]; !ok || has != value {
			return false
		}
	}
	return meetsAny(x, p.NodeAffinity)
}

// meetsAny reports whether the node meets one of the alternatives, if there are any.
func meetsAny(x *simNode, alternatives [][]requirements.Requirement) bool {
	return len(alternatives) == 0 || slices.ContainsFunc(alternatives, func(term []requirements.Requirement) bool {
		return !slices.ContainsFunc(term, func(r requirements.Requirement) bool { return !r.Matches(x.labels) })
	})
}

// freeShare is the mean part of CPU and memory that stays free, as kube-scheduler scores nodes by default.
func (x *simNode) freeShare(need resources.List) float64 {
	return float64(x.free.CPU-need.CPU)/float64(max(x.all.CPU, 1)) + float64(x.free.Memory-need.Memory)/float64(max(x.all.Memory, 1))
}

// withOverflowNodes adds to the launches of a plan about a set of nodes what pods will need that the scheduler leaves without a place. It is false
// when that does not end, or costs more than spare, USD per hour.
func (v *state) withOverflowNodes(from *baseline, set []*stateNode, p plan.Plan, spare float64) ([]plan.Launch, bool) {
	const most = 3
	b := v.boardOf(from)
	defer b.undoTo(len(b.steps))
	moving := v.removeNodes(b, set)
	planned := p.NodeByPod()
	launches, more := p.Launches, p.Launches
	for range most {
		for i, l := range more {
			name := fmt.Sprintf("launch %d", len(launches)-len(more)+i)
			for _, pod := range l.Pods {
				planned[pod] = name
			}
			b.addNode(v.siteOf(l, name))
		}
		left := b.unschedulablePods(moving, planned, len(launches) == 0)
		if len(left) == 0 {
			return launches, true
		}
		if v.minCosts(b, left) > spare*air {
			return nil, false
		}
		more = v.launchesFor(left, set, launches)
		if len(more) == 0 {
			return nil, false
		}
		launches = append(slices.Clone(launches), more...)
	}
	return nil, false
}

// unschedulablePods are pods that the scheduler may leave without a place. Nobody knows in what order they come to it. So they come in some and, where no
// new nodes have room to spare and a pod too many would bring back a node that has just gone, the small ones first and the large ones first.
// It moves nothing.
func (b *simulator) unschedulablePods(pods []*cluster.Pod, planned map[string]string, tight bool) []*cluster.Pod {
	size := func(x, y *cluster.Pod) int { return cmp.Or(bySize(x, y), byKey(x, y)) }
	orders := b.arrivalOrders()
	if tight {
		orders = append(orders, size, func(x, y *cluster.Pod) int { return size(y, x) })
	}
	for _, order := range orders {
		sorted := slices.SortedFunc(slices.Values(pods), order)
		if left := b.unschedulableEitherWay(sorted, func() []*cluster.Pod { return b.bindPods(sorted, planned) }); len(left) > 0 {
			return left
		}
	}
	return nil
}

// bySize puts the small ones first.
func bySize(x, y *cluster.Pod) int {
	return cmp.Or(cmp.Compare(x.Need.CPU, y.Need.CPU), cmp.Compare(x.Need.Memory, y.Need.Memory))
}

// arrivalOrders are some in which pods may come: by name, the other way round, and with those last that have the least choice.
func (b *simulator) arrivalOrders() []func(x, y *cluster.Pod) int {
	return []func(x, y *cluster.Pod) int{byKey, func(x, y *cluster.Pod) int { return byKey(y, x) }, b.byFreedom}
}

// byFreedom puts pods last that may be on few nodes, or where it matters which others are: what takes their place leaves them without, and no
// new node may do for them.
func (b *simulator) byFreedom(x, y *cluster.Pod) int {
	bound := func(p *cluster.Pod) int { return len(p.Affinity) + len(p.AntiAffinity) + len(p.Spread) }
	return cmp.Or(cmp.Compare(bound(x), bound(y)), cmp.Compare(len(b.admittingNodes(b.classOf(y))), len(b.admittingNodes(b.classOf(x)))), byKey(x, y))
}

// launchesFor are the launches that the pods need when no node there is takes them, and none that is launched besides: those have their part of
// limits, reservations and commitments.
func (v *state) launchesFor(pods []*cluster.Pod, set []*stateNode, besides []plan.Launch) []plan.Launch {
	d := newDigest()
	d.addText("alone")
	d.addText(namesOf(set)...)
	for _, p := range pods {
		d.addText(p.Namespace, p.Name)
	}
	for _, l := range besides {
		d.addText(l.Pool, l.Choice.String())
		d.addText(l.Pods...)
	}
	p := v.resolveOfferings().CachedPlan(v.world, uint64(d), func() cluster.Snapshot { return v.isolatePods(pods, set, besides) })
	v.countWork(len(pods), p)
	if len(p.Unplaced) > 0 {
		return nil
	}
	return p.Launches
}

// isolatePods is the snapshot without the nodes of the set in which these pods wait, no others do, and nothing that is there has room.
func (v *state) isolatePods(pods []*cluster.Pod, set []*stateNode, besides []plan.Launch) cluster.Snapshot {
	out := v.departingNodes()
	for _, n := range set {
		out[n.Node.Name] = true
	}
	s := v.questionWithout(v.saving.s, out, false)
	homeless := map[string]bool{}
	for _, p := range pods {
		homeless[p.Key()] = true
	}
	some := s.Pods[:0]
	for i := range s.Pods {
		if p := &s.Pods[i]; p.NodeName != "" || homeless[p.Key()] {
			some = append(some, *p)
		}
	}
	s.Pods = some
	s.Nodes, s.Claims = slices.Clone(s.Nodes), slices.Clone(s.Claims)
	for i := range s.Nodes {
		s.Nodes[i].Allocatable = noAllocatable()
	}
	for i := range s.Claims {
		s.Claims[i].Allocatable = noAllocatable()
	}
	for i, l := range besides {
		s.Claims = append(s.Claims, v.claimOf(l, fmt.Sprintf("launch %d", i), false))
	}
	return s
}

// claimOf is a launch as its claim will be, with room for pods or without.
func (v *state) claimOf(l plan.Launch, name string, room bool) cluster.Claim {
	p, _ := v.s.PoolOf(l.Pool)
	t, _ := v.typeIn(p, l.Choice.Type)
	c := cluster.Claim{Name: name, ProviderID: name, Pool: l.Pool, Class: p.Class, Labels: v.siteOf(l, name).labels, Capacity: t.Capacity, Allocatable: noAllocatable()}
	if room {
		c.Allocatable = t.Allocatable
	}
	return c
}

// removeNodes takes the nodes off the board and returns the pods that have to move, sorted.
func (v *state) removeNodes(b *simulator, set []*stateNode) []*cluster.Pod {
	for _, n := range set {
		b.removeNode(n)
	}
	moving := movingOf(set)
	slices.SortFunc(moving, byKey)
	return moving
}
