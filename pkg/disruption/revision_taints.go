package disruption

import (
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
)

// taintFailedRevisions decides which nodes are to take no more pods because they are rolled back, and which take pods
// again because they are not any more. A pod that leaves one such node does not come to another then, which it would
// have to leave as well. The taint stands for nothing else, so a pass that dies before or after it is made good by the
// next.
func (pr *progress) taintFailedRevisions(p *Plan) {
	for _, n := range pr.state.nodes {
		if n.Node == nil || n.Deleting() {
			continue
		}
		has := slices.ContainsFunc(n.Node.Taints, cluster.Taint.IsFailedRevision)
		switch wanted := n.isRolledBack() && !pr.state.isReportOnly(n); {
		case wanted && !has:
			p.TaintFailed = append(p.TaintFailed, n.Claim.Name)
		case !wanted && has:
			p.UntaintFailed = append(p.UntaintFailed, n.Claim.Name)
		}
	}
}

// trialDrain is a command of a NodeRollout that drains nodes for the revision that is tried.
type trialDrain struct {
	rollout string
	since   time.Time
	pods    []*cluster.Pod // that have not left
}

// drainsUnderWay returns the drains of nodes for revisions that are tried. One that takes longer than replaceTimeout is
// held up by those who own its pods, and others want the room.
func (pr *progress) drainsUnderWay() (out []trialDrain) {
	for _, n := range pr.state.nodes {
		if !n.isPrevious() || !n.Deleting() || !pr.state.now().Before(n.Claim.Deleting.Add(replaceTimeout)) {
			continue
		}
		if m, _ := markOf(*n.Claim); m.Reason == v1.DisruptionDrifted {
			out = append(out, trialDrain{n.pool.Rollout.Name, n.Claim.Deleting, n.moving})
		}
	}
	return out
}

// awaitsClosing counts the command, whose pods have room, among the drains, and says which node is to take none of them
// before they leave, because they would have to move once more; empty for none.
func (pr *progress) awaitsClosing(r *runningCommand) string {
	if r.mark.Reason != v1.DisruptionDrifted || !r.claims[0].isPrevious() {
		return ""
	}
	d := trialDrain{r.claims[0].pool.Rollout.Name, pr.state.now(), movingOf(r.claims)}
	pr.drains = append(pr.drains, d)
	for _, n := range pr.state.nodes {
		if pr.closesFor(n, d) && !n.isClosed() {
			return "node " + n.Name() + " is still open for its pods, which would have to leave it again"
		}
	}
	return ""
}

// closesFor reports whether the node is to take no pods because of the drain: it is of a previous revision as well, was
// there when the drain began, and has room for a pod that leaves. One for which pods wait stays open.
func (pr *progress) closesFor(n *stateNode, d trialDrain) bool {
	switch {
	case !n.isPrevious() || n.pool.Rollout.Name != d.rollout || pr.state.isReportOnly(n) || n.Node == nil ||
		n.Deleting() || !n.Claim.Created.Before(d.since):
		return false
	case n.isClosed():
		return true
	case n.Node.IsTaintedDisrupted() || !n.Initialized() || pr.awaited()[n.Name()]:
		return false
	}
	var used resources.List
	for _, p := range n.pods {
		used = used.Add(p.Need)
	}
	free := n.Allocatable().Sub(used)
	return slices.ContainsFunc(d.pods, func(p *cluster.Pod) bool { return p.NextNeed().FitsIn(free) })
}

// isClosed reports whether the node takes no pods because another of a previous revision is drained.
func (n *stateNode) isClosed() bool {
	return slices.ContainsFunc(n.Node.Taints, cluster.Taint.IsPreviousRevision)
}

// awaited returns the nodes on which pods that wait are about to run.
func (pr *progress) awaited() map[string]bool {
	if pr.awaitedNodes == nil {
		pr.awaitedNodes = map[string]bool{}
		for _, x := range pr.state.base.Existing {
			if p := pr.state.podOf(x.Pod); p != nil && p.NodeName == "" {
				pr.awaitedNodes[x.Node] = true
			}
		}
	}
	return pr.awaitedNodes
}

// taintPreviousRevisions decides which nodes are to take no pods as long as others like them are drained, and which do
// again.
func (pr *progress) taintPreviousRevisions(p *Plan) {
	for _, n := range pr.state.nodes {
		if n.Node == nil || n.Deleting() || len(pr.drains) == 0 && !n.isClosed() {
			continue
		}
		wanted := slices.ContainsFunc(pr.drains, func(d trialDrain) bool { return pr.closesFor(n, d) })
		switch {
		case wanted && !n.isClosed():
			p.TaintPrevious = append(p.TaintPrevious, n.Claim.Name)
		case !wanted && n.isClosed():
			p.UntaintPrevious = append(p.UntaintPrevious, n.Claim.Name)
		}
	}
}
