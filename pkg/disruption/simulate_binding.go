package disruption

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption/simulator"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/podclass"
)

// simulatedNode returns the node that a launch will be if it gets its choice.
func (st *State) simulatedNode(l plan.Launch, name string) *simulator.Node {
	all := map[string]string{v1.LabelNodePool: l.Pool}
	p, _ := st.snapshot.PoolOf(l.Pool)
	t, _ := st.typeIn(p, l.Choice.Type)
	for _, labels := range []map[string]string{t.Requirements.Labels(), l.Requirements.Labels(), l.Labels,
		{corev1.LabelInstanceTypeStable: l.Choice.Type}} {
		maps.Copy(all, labels)
	}
	for _, key := range []string{instancetypes.LabelZone, instancetypes.LabelZoneID, instancetypes.LabelCapacityType,
		instancetypes.LabelReservationID, instancetypes.LabelReservation, instancetypes.LabelInterruptible} {
		if all[key], _ = l.Choice.Label(key); all[key] == "" {
			delete(all, key)
		}
	}
	for _, old := range []string{corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
		corev1.LabelInstanceType, awsv1.LabelEBSZone, "beta.kubernetes.io/arch", "beta.kubernetes.io/os"} {
		if v, has := all[podclass.CanonicalKey(old)]; has {
			all[old] = v
		}
	}
	kept := l.Requests // of its pods and daemons
	for _, p := range st.podsByKeys(l.Pods) {
		kept = kept.Sub(p.Need)
	}
	out := simulator.NewNode(name, all, l.Taints, t.Allocatable, t.Allocatable.Sub(kept.Max(resources.List{})))
	class, _ := st.snapshot.ClassOf(p.ClassKey())
	out.SetProvided(func(part string) bool { return st.snapshot.NewNodeProvides(class, part) })
	return out
}

// podOf returns the pod of that key, nil when there is none.
func (st *State) podOf(key string) *cluster.Pod {
	if st.podBy == nil {
		st.podBy = lists.Pointers(st.snapshot.Pods, func(p *cluster.Pod) string { return p.Key() })
	}
	return st.podBy[key]
}

// podsByKeys returns the pods of those keys that there are.
func (st *State) podsByKeys(keys []string) (out []*cluster.Pod) {
	for _, key := range keys {
		if p := st.podOf(key); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// withOverflowNodes adds to the launches of a plan about the nodes what pods will need that the scheduler would leave
// unschedulable. It is false when that does not end, or costs more than spare, USD per hour.
func (ev *Evaluator) withOverflowNodes(from *baseline, set []*stateNode, p plan.Plan, spare float64) ([]plan.Launch,
	bool) {
	b := ev.simulatorOf(from)
	defer b.UndoTo(b.Mark())
	moving := ev.removeNodes(b, set)
	planned := p.NodeByPod()
	launches, more := p.Launches, p.Launches
	for range maxRounds {
		for i, l := range more {
			name := fmt.Sprintf("launch %d", len(launches)-len(more)+i)
			for _, pod := range l.Pods {
				planned[pod] = name
			}
			b.AddNode(ev.state.simulatedNode(l, name))
		}
		left := b.Unschedulable(moving, planned, len(launches) == 0)
		if len(left) == 0 {
			return launches, true
		}
		if ev.minCosts(b, left) > spare*costMargin {
			return nil, false
		}
		more = ev.launchesFor(left, set, launches)
		if len(more) == 0 {
			return nil, false
		}
		launches = append(slices.Clone(launches), more...)
	}
	return nil, false
}

// launchesFor returns the launches that the pods need when no node takes them, none where some have no place then.
func (ev *Evaluator) launchesFor(pods []*cluster.Pod, set []*stateNode, besides []plan.Launch) []plan.Launch {
	p := ev.planAlone(pods, set, besides)
	if len(p.Unplaced) > 0 {
		return nil
	}
	return p.Launches
}

// planAlone returns the plan for the pods when no node takes them, existing or launched besides. What is launched
// besides has its part of limits, reservations and commitments.
func (ev *Evaluator) planAlone(pods []*cluster.Pod, set []*stateNode, besides []plan.Launch) plan.Plan {
	var d inputDigest
	d.addText("alone")
	d.addText(namesOf(set)...)
	for _, p := range pods {
		d.addText(p.Namespace, p.Name)
	}
	for _, l := range besides {
		d.addText(l.Pool, l.Choice.String())
		d.addText(l.Pods...)
	}
	p := ev.state.resolveOfferings().CachedPlan(ev.inputs, d.sum(),
		func() cluster.Snapshot { return ev.isolatePods(ev.consolidationBaseline, pods, set, besides) })
	ev.meter.countQuestion(len(pods), p)
	return ev.withinVolumeLimits(p, set, besides)
}

// isolatePods returns the snapshot without the nodes of the set in which these pods wait, no others do, and no existing
// node has room.
func (ev *Evaluator) isolatePods(from *baseline, pods []*cluster.Pod, set []*stateNode,
	besides []plan.Launch) cluster.Snapshot {
	out := ev.departingNodes()
	for _, n := range set {
		out[n.Node.Name] = true
	}
	s := ev.withoutNodesOnce(from.snapshot, out, from.forGood)
	pending := lists.Set(pods, func(p *cluster.Pod) string { return p.Key() })
	some := s.Pods[:0]
	for i := range s.Pods {
		if p := &s.Pods[i]; p.NodeName != "" || pending[p.Key()] {
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
		s.Claims = append(s.Claims, ev.state.claimOf(l, fmt.Sprintf("launch %d", i), false))
	}
	return s
}

// claimOf returns the NodeClaim that a launch will be, with room for pods or without.
func (st *State) claimOf(l plan.Launch, name string, room bool) cluster.Claim {
	p, _ := st.snapshot.PoolOf(l.Pool)
	t, _ := st.typeIn(p, l.Choice.Type)
	c := cluster.Claim{Name: name, ProviderID: name, Pool: l.Pool, Class: p.Class,
		Labels: st.simulatedNode(l, name).Labels(), Capacity: t.Capacity, Allocatable: noAllocatable()}
	if room {
		c.Allocatable = t.Allocatable
	}
	return c
}

// removeNodes takes the nodes away from the simulator and returns the pods that have to move, sorted.
func (ev *Evaluator) removeNodes(b *simulator.Simulator, set []*stateNode) []*cluster.Pod {
	for _, n := range set {
		b.RemoveNode(n.Name(), n.moving)
	}
	moving := movingOf(set)
	slices.SortFunc(moving, simulator.ByKey)
	return moving
}
