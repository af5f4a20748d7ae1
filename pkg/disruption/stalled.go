package disruption

import (
	"slices"
	"time"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/plan"
	"joiner/pkg/model/topology"
)

// inVainFor is how long it must have been certain that a command waits for nothing before it is taken back. What cannot be foreseen has
// come by then as a rule: a pod that a controller is about to remove has gone, and one that it makes runs. A false alarm costs what was launched
// and has the nodes left alone for a while; it moves no pod.
const inVainFor = 2 * time.Minute

// isStalled says why a command that waits for room is taken back before its time is up, or nothing: its replacements are ready, and one of its
// pods has no room even when all that is ending has ended and all that is on its way has come.
func (v *state) isStalled(r *runningCommand) string {
	if slices.ContainsFunc(r.with, func(n *stateNode) bool { return !n.Initialized() && !n.ReadyForNominated() }) {
		return ""
	}
	if v.foreseen == nil {
		v.foreseen = v.predictUnschedulable()
	}
	why := v.foreseen(r)
	if why == "" {
		return ""
	}
	since, known := v.vainBefore[r.mark.ID]
	if !known || since.After(v.now()) { // or the clock was set back
		since = v.now()
	}
	v.vain[r.mark.ID] = since
	if v.now().Before(since.Add(inVainFor)) {
		return ""
	}
	return "waiting longer is in vain: " + why
}

// predictUnschedulable returns a function that says which pod of a command has no room later either, or nothing.
func (v *state) predictUnschedulable() func(*runningCommand) string {
	w := v.afterPendingChanges()
	why := w.podsWithoutRoomNow()
	ready := map[string]bool{}
	leaving := map[string]bool{}
	for _, h := range w.s.StateNodes() {
		ready[h.Name()], leaving[h.Name()] = true, h.Deleting()
	}
	left := w.unschedulableOfCommands(ready, why)
	var coming []cluster.Pod
	for _, p := range w.s.Pods {
		if p.Active() && !p.Virtual && (p.NodeName == "" || leaving[p.NodeName]) {
			coming = append(coming, p)
		}
	}
	leans := func(p *cluster.Pod) bool {
		return slices.ContainsFunc(coming, func(other cluster.Pod) bool { return topology.DependsOn(*p, other, w.s.Namespaces) })
	}
	return func(r *runningCommand) string {
		for _, p := range r.podsToMove() {
			if reason := why[p.Key()]; reason != "" && left[p.Key()] && !leans(p) {
				return reason
			}
		}
		return ""
	}
}

// afterPendingChanges is the snapshot once all that is ending has ended and nodes that are not ready are.
func (v *state) afterPendingChanges() *state {
	w := *v
	w.s.Pods = slices.DeleteFunc(slices.Clone(v.s.Pods), func(p cluster.Pod) bool { return p.Terminating() && !p.Terminal() })
	w.s.Nodes = slices.Clone(v.s.Nodes)
	for i := range w.s.Nodes {
		n := &w.s.Nodes[i]
		n.Ready, n.Taints = true, slices.DeleteFunc(slices.Clone(n.Taints), cluster.Taint.Ephemeral)
	}
	w.base = v.planSnapshot(w.withNewReplacements())
	return &w
}

// isExpectedOn reports whether a pod that waits is about to run on the node.
func (v *state) isExpectedOn(n *stateNode) bool {
	return slices.ContainsFunc(v.base.Existing, func(x plan.Placement) bool {
		return x.Node == n.Name() && !v.virtual[x.Pod] && v.podOf(x.Pod) != nil && v.podOf(x.Pod).NodeName == ""
	})
}
