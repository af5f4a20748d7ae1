package disruption

import (
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/topology"
)

// stalledFor is the time that a command must have been found stalled before it is rolled back. What cannot be predicted
// has come by then as a rule: a pod that a controller is about to remove has gone, and one that it makes runs. A false
// alarm costs what was launched and has the nodes left alone for a while; it moves no pod.
const stalledFor = 2 * time.Minute

// isStalled returns why a command that waits for room is rolled back before its time is up, or nothing: its
// replacements are ready, and one of its pods has no room even when all that is ending has ended and all that is on its
// way has come.
func (pr *progress) isStalled(r *runningCommand) string {
	if slices.ContainsFunc(r.with, func(n *stateNode) bool { return !n.Initialized() && !n.ReadyForNominated() }) {
		return ""
	}
	if pr.unschedulableLater == nil {
		pr.unschedulableLater = pr.predictUnschedulable()
	}
	why := pr.unschedulableLater(r)
	if why == "" {
		return ""
	}
	since, known := pr.stalledBefore[r.mark.ID]
	if !known || since.After(pr.state.now()) { // or the clock was set back
		since = pr.state.now()
	}
	pr.stalled[r.mark.ID] = since
	if pr.state.now().Before(since.Add(stalledFor)) {
		return ""
	}
	return "waiting longer is in vain: " + why
}

// predictUnschedulable returns a function that says which pod of a command has no room later either, or nothing.
func (pr *progress) predictUnschedulable() func(*runningCommand) string {
	w := pr.afterPendingChanges()
	why := w.podsWithoutRoomNow()
	ready := map[string]bool{}
	leaving := map[string]bool{}
	for _, node := range w.state.snapshot.StateNodes() {
		ready[node.Name()], leaving[node.Name()] = true, node.Deleting()
	}
	left := w.unschedulableOfCommands(ready, why)
	var coming []cluster.Pod
	for i := range w.state.snapshot.Pods {
		p := &w.state.snapshot.Pods[i]
		if p.Active() && !p.Virtual && (p.NodeName == "" || leaving[p.NodeName]) {
			coming = append(coming, *p)
		}
	}
	namespaces := topology.IndexNamespaces(w.state.snapshot.Namespaces)
	leans := func(p *cluster.Pod) bool {
		return slices.ContainsFunc(coming, func(other cluster.Pod) bool {
			return topology.DependsOn(*p, other, namespaces)
		})
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

// afterPendingChanges returns the state once all that is ending has ended and nodes that are not ready are.
func (pr *progress) afterPendingChanges() *progress {
	w := *pr.state
	w.snapshot.Pods = slices.DeleteFunc(slices.Clone(pr.state.snapshot.Pods),
		func(p cluster.Pod) bool { return p.Terminating() && !p.Terminal() })
	w.snapshot.Nodes = slices.Clone(pr.state.snapshot.Nodes)
	for i := range w.snapshot.Nodes {
		n := &w.snapshot.Nodes[i]
		n.Ready, n.Taints = true, slices.DeleteFunc(slices.Clone(n.Taints), cluster.Taint.Ephemeral)
	}
	w.base = pr.state.planSnapshot(w.withNewReplacements())
	return &progress{state: &w}
}

// isExpectedOn reports whether a pod that waits is about to run on the node.
func (pr *progress) isExpectedOn(n *stateNode) bool {
	return slices.ContainsFunc(pr.state.base.Existing, func(x plan.Placement) bool {
		p := pr.state.podOf(x.Pod)
		return x.Node == n.Name() && !pr.state.virtual[x.Pod] && p != nil && p.NodeName == ""
	})
}
