package disruption

import (
	"slices"

	"joiner.sh/pkg/disruption/simulator"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/resources"
)

// baseline is the cluster from which the what-if questions of one kind of disruption start.
type baseline struct {
	snapshot cluster.Snapshot
	forGood  bool // nodes that go do not count for the limits of their pools any more
	forTrial bool // nodes of revisions before the one that is tried have no room
	shared   *sharedSimulator
}

// sharedSimulator is the simulator of a baseline, made once somebody asks for it. Baselines of equal room share one.
type sharedSimulator struct {
	sim     *simulator.Simulator
	removed map[*stateNode]bool // nodes that were taken off it
}

// newBaselines returns the baselines of drift and of consolidation. That of consolidation has no room on nodes whose
// pods changed recently: moving those pods again soon would cost more than it saves. Drifted nodes go whatever that
// costs.
func (st *State) newBaselines() (drift, consolidation *baseline) {
	drift = &baseline{snapshot: st.placedSnapshot(), forGood: true, shared: &sharedSimulator{}}
	consolidation = &baseline{snapshot: drift.snapshot, shared: drift.shared}
	if slices.ContainsFunc(st.nodes, st.takesNoPods) {
		consolidation = &baseline{snapshot: st.withoutRoomOn(drift.snapshot, st.takesNoPods),
			shared: &sharedSimulator{}}
	}
	return drift, consolidation
}

// trialBaseline returns the baseline of nodes that a NodeRollout replaces: that of drift without room on nodes of the
// revisions before, from which the pods would have to move once more.
func (ev *Evaluator) trialBaseline() *baseline {
	if ev.trial == nil {
		ev.trial = &baseline{snapshot: ev.state.withoutRoomOn(ev.driftBaseline.snapshot, (*stateNode).isPrevious),
			forGood: true, forTrial: true, shared: &sharedSimulator{}}
	}
	return ev.trial
}

// placedSnapshot returns the snapshot with every pod where the base plan puts it, so that a question about some nodes
// is about their pods only. Pods that wait for new nodes are left out: their nodes are on their way. Nodes that are not
// initialized have no room.
func (st *State) placedSnapshot() cluster.Snapshot {
	s := st.snapshot
	to := st.base.NodeByPod()
	gone := map[string]bool{}
	for _, u := range st.base.Unplaced {
		gone[u.Pod] = true
	}
	for _, l := range st.base.Launches {
		for _, p := range l.Pods {
			gone[p] = true
		}
	}
	leaving := st.nodeNames(func(n *stateNode) bool { return n.MarkedForDeletion() })
	if len(to)+len(gone)+len(leaving) > 0 { // else all pods stay where they are
		s.Pods = make([]cluster.Pod, 0, len(st.snapshot.Pods))
		for i := range st.snapshot.Pods {
			p := &st.snapshot.Pods[i]
			host, found := to[p.Key()]
			if gone[p.Key()] || leaving[p.NodeName] && !found {
				continue
			}
			s.Pods = append(s.Pods, *p)
			if found {
				p = &s.Pods[len(s.Pods)-1]
				p.NodeName, p.Unscheduled, p.Nominated = host, false, ""
			}
		}
	}
	return st.withoutRoomOn(st.withoutNodes(s, leaving, false), func(n *stateNode) bool { return !n.Initialized() })
}

// withoutRoomOn returns the snapshot in which nodes of ours for which closed is true have no room.
func (st *State) withoutRoomOn(s cluster.Snapshot, closed func(*stateNode) bool) cluster.Snapshot {
	s.Nodes, s.Claims = slices.Clone(s.Nodes), slices.Clone(s.Claims)
	nodes := st.nodeNames(closed)
	claims := lists.Set(lists.Where(st.nodes, closed), func(n *stateNode) string { return n.Claim.Name })
	for i := range s.Nodes {
		if nodes[s.Nodes[i].Name] {
			s.Nodes[i].Allocatable = noAllocatable()
		}
	}
	for i := range s.Claims {
		if claims[s.Claims[i].Name] {
			s.Claims[i].Allocatable = noAllocatable()
		}
	}
	return s
}

// noAllocatable is an allocatable that no pod fits into and that does not count as unknown.
func noAllocatable() resources.List { return resources.List{CPU: 1} }

// simulatorOf returns the simulator of the baseline, without the nodes that this pass has taken.
func (ev *Evaluator) simulatorOf(from *baseline) *simulator.Simulator {
	d := from.shared
	if d.sim == nil {
		d.sim, d.removed = simulator.New(from.snapshot, ev.departingNodes()), map[*stateNode]bool{}
	}
	for _, n := range ev.state.nodes {
		if n.taken && n.Node != nil && !d.removed[n] {
			d.sim.RemoveNode(n.Name(), n.moving)
			d.removed[n] = true
		}
	}
	return d.sim
}

// consolidationSimulator returns the simulator of the baseline of consolidation.
func (ev *Evaluator) consolidationSimulator() *simulator.Simulator {
	return ev.simulatorOf(ev.consolidationBaseline)
}
