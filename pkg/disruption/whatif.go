package disruption

import (
	"fmt"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
)

// withoutNodes is withoutNodesInto with memory of its own.
func (st *State) withoutNodes(s cluster.Snapshot, out map[string]bool, forGood bool) cluster.Snapshot {
	return st.withoutNodesInto(nil, s, out, forGood)
}

// withoutNodesInto returns the snapshot without the nodes of those names. Pods that need room elsewhere are pending,
// the others are gone; those that nobody may evict need none. The pods are appended to pods, whose memory is used.
func (st *State) withoutNodesInto(pods []cluster.Pod, s cluster.Snapshot, out map[string]bool,
	forGood bool) cluster.Snapshot {
	if len(out) == 0 {
		return s
	}
	pods = slices.Grow(pods, len(s.Pods))
	for i := range s.Pods {
		p := &s.Pods[i]
		if !out[p.NodeName] {
			pods = append(pods, *p)
		} else if p.Reschedulable() && !p.Protected(st.now()) && !st.obstacles().Unevictable(p) {
			pods = append(pods, *p)
			p = &pods[len(pods)-1]
			p.NodeName, p.Unscheduled, p.Deleting = "", true, time.Time{}
			p.Need = p.NextNeed()
		}
	}
	s.Pods = pods
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n cluster.Node) bool { return out[n.Name] })
	s.Claims = slices.Clone(s.Claims)
	for i := range s.Claims {
		c := &s.Claims[i]
		n := st.byClaim[c.Name]
		if n == nil || n.Node == nil || !out[n.Node.Name] {
			continue
		}
		gone := cluster.Claim{Name: c.Name, Pool: c.Pool, Capacity: n.Capacity(), Allocatable: noAllocatable(),
			Deleting: c.Deleting}
		if forGood {
			gone.Deleting = st.now()
		}
		*c = gone
	}
	return s
}

// withoutNodesOnce is withoutNodesInto for one question: the pods are valid until the next.
func (ev *Evaluator) withoutNodesOnce(s cluster.Snapshot, out map[string]bool, forGood bool) cluster.Snapshot {
	s = ev.state.withoutNodesInto(ev.podBuffer[:0], s, out, forGood)
	if len(out) > 0 {
		ev.podBuffer = s.Pods
	}
	return s
}

// planWithout returns where the pods of the nodes would go were the nodes not there, and what would have to be launched
// for them. Unless the baseline is for good, the nodes still count for the limits of their pools, because both run
// while pods move. What is launched besides has room for the pods. Pods for which commands of this pass launch nodes
// need no more.
func (ev *Evaluator) planWithout(from *baseline, set []*stateNode, besides ...plan.Launch) plan.Plan {
	ev.state.tellStage(stageQuestion, set)
	var d inputDigest
	d.addText("without")
	d.addText(namesOf(set)...)
	d.addBool(from.forGood, from.forTrial)
	for _, l := range besides {
		d.addText(l.Pool, l.Choice.String())
	}
	p := ev.state.resolveOfferings().CachedPlan(ev.inputs, d.sum(), func() cluster.Snapshot {
		s := ev.state.withoutNodes(from.snapshot, ev.departingWithPods(), false)
		if len(ev.podsWithLaunch) > 0 {
			s.Pods = slices.DeleteFunc(slices.Clone(s.Pods),
				func(p cluster.Pod) bool { return p.NodeName == "" && ev.podsWithLaunch[p.Key()] })
		}
		out := lists.Set(set, func(n *stateNode) string { return n.Node.Name })
		if from.forGood && len(set) == 1 && s.Rules.MaxClaims > 0 {
			s.Rules.MaxClaims = 0 // nothing smaller can be asked about
		}
		for i, l := range besides {
			s.Claims = append(slices.Clone(s.Claims), ev.state.claimOf(l, fmt.Sprintf("launch %d", i), true))
		}
		return ev.withoutNodesOnce(s, out, from.forGood)
	})
	ev.meter.countQuestion(podsOf(set), p)
	return ev.withinVolumeLimits(p, set, besides)
}
