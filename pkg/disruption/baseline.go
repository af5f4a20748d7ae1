package disruption

import (
	"slices"

	"joiner/pkg/disruption/simulator"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/resources"
)

// baseline is the cluster from which the what-if questions of a kind of disruption start.
type baseline struct {
	s       cluster.Snapshot
	forGood bool // nodes that go do not count for the limits of their pools any more
	desk    *desk
}

// desk is the board of a baseline, made once somebody asks for it.
type desk struct {
	board   *simulator.Simulator
	cleaned map[*stateNode]bool // nodes that were taken off it
}

// baselines are that of drift and that of consolidation. Consolidation alone puts nothing onto young nodes: to let pods of those move
// again soon would cost more than it saves, and what has drifted goes whatever it costs.
func (st *State) baselines() (drift, consolidation *baseline) {
	drift = &baseline{s: st.placedSnapshot(), forGood: true, desk: &desk{}}
	consolidation = &baseline{s: drift.s, desk: drift.desk}
	if slices.ContainsFunc(st.nodes, st.takesNoPods) {
		consolidation = &baseline{s: st.close(drift.s, st.takesNoPods), desk: &desk{}}
	}
	return drift, consolidation
}

// placedSnapshot is the snapshot with every pod where the base plan puts it, so that a question about some nodes is about their pods only.
// Pods that wait for new nodes are left out: their nodes are on their way. Nodes that are not initialized have no room.
func (st *State) placedSnapshot() cluster.Snapshot {
	s := st.s
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
	s.Pods = make([]cluster.Pod, 0, len(st.s.Pods))
	leaving := map[string]bool{}
	for _, n := range st.nodes {
		if n.Node != nil && n.MarkedForDeletion() {
			leaving[n.Node.Name] = true
		}
	}
	for _, p := range st.s.Pods {
		host, found := to[p.Key()]
		if gone[p.Key()] || leaving[p.NodeName] && !found {
			continue
		}
		if found {
			p.NodeName, p.Unscheduled, p.Nominated = host, false, ""
		}
		s.Pods = append(s.Pods, p)
	}
	return st.close(st.withoutNodes(s, leaving, false), func(n *stateNode) bool { return !n.Initialized() })
}

// close is the snapshot in which those of our nodes have no room.
func (st *State) close(s cluster.Snapshot, closed func(*stateNode) bool) cluster.Snapshot {
	s.Nodes, s.Claims = slices.Clone(s.Nodes), slices.Clone(s.Claims)
	nodes, claims := map[string]bool{}, map[string]bool{}
	for _, n := range st.nodes {
		if !closed(n) {
			continue
		}
		claims[n.Claim.Name] = true
		if n.Node != nil {
			nodes[n.Node.Name] = true
		}
	}
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

// noAllocatable is an allocatable into which no pod fits, and which is not mistaken for one that nobody knows.
func noAllocatable() resources.List { return resources.List{CPU: 1} }

// boardOf is the board of the baseline, without what something takes away already.
func (ev *Evaluator) boardOf(from *baseline) *simulator.Simulator {
	d := from.desk
	if d.board == nil {
		d.board, d.cleaned = simulator.New(from.s, ev.departingNodes()), map[*stateNode]bool{}
	}
	for _, n := range ev.nodes {
		if n.taken && n.Node != nil && !d.cleaned[n] {
			d.board.RemoveNode(n.Name(), n.moving)
			d.cleaned[n] = true
		}
	}
	return d.board
}

// newPlacedSimulator is the board of consolidation.
func (ev *Evaluator) newPlacedSimulator() *simulator.Simulator { return ev.boardOf(ev.saving) }
