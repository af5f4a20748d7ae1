package disruption

import (
	"fmt"
	"slices"
	"time"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/plan"
)

// withoutNodes is the snapshot without the nodes of those names. Pods that need room elsewhere are pending, the others gone; those that nobody may
// evict need none.
func (v *state) withoutNodes(s cluster.Snapshot, out map[string]bool, forGood bool) cluster.Snapshot {
	return v.dropInto(nil, s, out, forGood)
}

// dropInto is drop with the memory for the pods.
func (v *state) dropInto(pods []cluster.Pod, s cluster.Snapshot, out map[string]bool, forGood bool) cluster.Snapshot {
	if len(out) == 0 {
		return s
	}
	pods = slices.Grow(pods, len(s.Pods))
	for i := range s.Pods {
		p := &s.Pods[i]
		if !out[p.NodeName] {
			pods = append(pods, *p)
		} else if p.Reschedulable() && !p.Protected(v.now()) && !v.s.Unevictable(*p) {
			pods = append(pods, *p)
			p = &pods[len(pods)-1]
			p.NodeName, p.Unscheduled, p.Deleting = "", true, time.Time{}
		}
	}
	s.Pods = pods
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n cluster.Node) bool { return out[n.Name] })
	s.Claims = slices.Clone(s.Claims)
	for i := range s.Claims {
		c := &s.Claims[i]
		n := v.byClaim[c.Name]
		if n == nil || n.Node == nil || !out[n.Node.Name] {
			continue
		}
		gone := cluster.Claim{Name: c.Name, Pool: c.Pool, Capacity: n.Capacity(), Allocatable: noAllocatable(), Deleting: c.Deleting}
		if forGood {
			gone.Deleting = v.now()
		}
		*c = gone
	}
	return s
}

// questionWithout is drop for one question: the pods are valid until the next.
func (v *state) questionWithout(s cluster.Snapshot, out map[string]bool, forGood bool) cluster.Snapshot {
	s = v.dropInto(v.asking[:0], s, out, forGood)
	if len(out) > 0 {
		v.asking = s.Pods
	}
	return s
}

// planWithout is where the pods of the nodes would go were the nodes not there, and what would have to be launched for them. Unless they
// go for good the nodes count for the limits of their pools still: both run while pods move. What is launched besides has room for them.
// Pods for which commands of this pass launch nodes need no more.
func (v *state) planWithout(from *baseline, set []*stateNode, besides ...plan.Launch) plan.Plan {
	v.planted(stageQuestion, set)
	d := newDigest()
	d.addText("without")
	d.addText(namesOf(set)...)
	d.addBool(from.forGood)
	for _, l := range besides {
		d.addText(l.Pool, l.Choice.String())
	}
	p := v.resolveOfferings().CachedPlan(v.world, uint64(d), func() cluster.Snapshot {
		s := v.withoutNodes(from.s, v.leavingFor(), false)
		if len(v.housed) > 0 {
			s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p cluster.Pod) bool { return p.NodeName == "" && v.housed[p.Key()] })
		}
		out := map[string]bool{}
		for _, n := range set {
			out[n.Node.Name] = true
		}
		if from.forGood && len(set) == 1 {
			s.Rules.MaxClaims = 0 // nothing smaller can be asked about
		}
		for i, l := range besides {
			s.Claims = append(slices.Clone(s.Claims), v.claimOf(l, fmt.Sprintf("launch %d", i), true))
		}
		return v.questionWithout(s, out, from.forGood)
	})
	v.meter.count(podsOf(set), p)
	return p
}
