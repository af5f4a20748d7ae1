package disruption

import (
	"fmt"
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/rollout"
)

// driftedByClass reports whether the node drifted because of its EC2NodeClass or its image, in a pool of a NodeRollout.
func (n *stateNode) driftedByClass() bool {
	if n.pool == nil || n.pool.Rollout == nil {
		return false
	}
	k := n.Claim.Condition(v1.ConditionDrifted)
	return k.Status == "True" && (k.Reason == "NodeClassDrift" || k.Reason == "AMIDrift")
}

// awaitsTrial reports whether the node may be replaced by one of the revision that a NodeRollout tries, as far as its
// step allows.
func (n *stateNode) awaitsTrial() bool {
	return n.driftedByClass() && n.pool.Rollout.DriftTo != "" && n.pool.Rollout.DriftTo == n.pool.Rollout.Try
}

// rolloutRefusal returns why the NodeRollout of its pool keeps a drifted node.
func (ps *candidates) rolloutRefusal(n *stateNode) refusal {
	if !n.driftedByClass() {
		return refusal{}
	}
	r := n.pool.Rollout
	switch own := r.RevisionOf(*n.Claim); {
	case n.awaitsTrial() && own == r.Try, !n.awaitsTrial() && own == r.ComparedWith(*n.Claim):
		return refusal{IneligibleRollout, "NodeRollout " + r.Name + " leaves nodes of revision " + own + " as they are"}
	case n.awaitsTrial() && len(n.moving) > 0 && ps.budget.slotsLeft(*r) <= 0:
		return refusal{IneligibleRollout, "the step of NodeRollout " + r.Name + " allows no more nodes of revision " + r.Try}
	}
	return refusal{}
}

// hasFailed reports whether the revision of the node's claim failed in the NodeRollout of its pool.
func (n *stateNode) hasFailed() bool {
	return n.pool != nil && n.pool.Rollout != nil && n.pool.Rollout.Failed != "" &&
		n.pool.Rollout.RevisionOf(*n.Claim) == n.pool.Rollout.Failed
}

// isHalted reports whether the node stays as the NodeRollout was halted with it.
func (n *stateNode) isHalted() bool { return n.hasFailed() && n.pool.Rollout.DriftTo == "" }

// isRolledBack reports whether a NodeRollout has the node replaced because its revision failed.
func (n *stateNode) isRolledBack() bool {
	return n.pool != nil && n.pool.Rollout != nil &&
		slices.Contains(n.pool.Rollout.RolledBack, n.pool.Rollout.RevisionOf(*n.Claim))
}

// taintFailedRevisions decides which nodes are to take no more pods because they are rolled back, and which take pods
// again because they are not any more. A pod that leaves one such node does not come to another then, which it would
// have to leave as well. The taint stands for nothing else, so a pass that dies before or after it is made good by the
// next.
func (pr *progress) taintFailedRevisions(p *Plan) {
	for _, n := range pr.nodes {
		if n.Node == nil || n.Deleting() {
			continue
		}
		has := slices.ContainsFunc(n.Node.Taints, cluster.Taint.IsFailedRevision)
		switch wanted := n.isRolledBack() && !pr.isReportOnly(n); {
		case wanted && !has:
			p.TaintFailed = append(p.TaintFailed, n.Claim.Name)
		case !wanted && has:
			p.UntaintFailed = append(p.UntaintFailed, n.Claim.Name)
		}
	}
}

// failedRevision says which replacement of the command has a revision that failed, to which no pod is to move any more;
// empty for none.
func (r *runningCommand) failedRevision() string {
	for _, n := range r.with {
		if n.hasFailed() {
			return "its replacement " + n.Claim.Name + " has revision " + n.pool.Rollout.Failed + ", which failed"
		}
	}
	return ""
}

// slotsLeft is how many more nodes the step allows in this pass.
func (b *Budget) slotsLeft(r cluster.PoolRollout) int { return r.Slots - b.tried[r.Name] }

// takeSlots counts the launches of the command that get a revision which is tried.
func (ps *pass) takeSlots(c Command) {
	for _, l := range c.Launches {
		if p, ok := ps.snapshot.PoolOf(l.Pool); ok && p.Rollout != nil && p.Rollout.Try != "" &&
			l.Annotations[v1.AnnotationNodeRevision] == p.Rollout.Try {
			if ps.budget.tried == nil {
				ps.budget.tried = map[string]int{}
			}
			ps.budget.tried[p.Rollout.Name]++
		}
	}
}

// replaceForTrial returns the command that replaces the node by as many of the revision that is tried as its pods need,
// and one at least: where its pods fit elsewhere, a new node is made for them all the same.
func (ps *pass) replaceForTrial(n *stateNode) (Command, bool) {
	c, ok := ps.replaceDrifted([]*stateNode{n})
	if !ok {
		return c, false
	}
	r := n.pool.Rollout
	mine := func(l plan.Launch) bool { return isOfRollout(ps.snapshot, l, r.Name) }
	if len(n.moving) > 0 && !slices.ContainsFunc(c.Launches, mine) {
		c.Launches = append(c.Launches, ps.launchesForPods(n)...)
	}
	count := 0
	for i, l := range c.Launches {
		if mine(l) {
			count++
			c.Launches[i] = rollout.WithRevision(l, r.Try)
		}
	}
	switch {
	case count == 0 && len(n.moving) > 0:
		n.notReplaced = refusal{IneligibleDrifted, "it has drifted, and its pods need no node of its NodeRollout"}
		return Command{}, false
	case count > ps.budget.slotsLeft(*r):
		n.notReplaced = refusal{IneligibleRollout, fmt.Sprintf(
			"its pods need %d nodes of revision %s, and the step of NodeRollout %s allows %d", count,
			r.Try, r.Name, ps.budget.slotsLeft(*r))}
		return Command{}, false
	}
	return ps.newCommand([]*stateNode{n}, v1.DisruptionDrifted, c.Launches), true
}

func isOfRollout(s cluster.Snapshot, l plan.Launch, name string) bool {
	p, ok := s.PoolOf(l.Pool)
	return ok && p.Rollout != nil && p.Rollout.Name == name
}

// launchesForPods are the nodes that the pods of the node would need were there no others.
func (ps *pass) launchesForPods(n *stateNode) []plan.Launch {
	s := ps.snapshot
	s.Nodes, s.Claims, s.Pods = nil, nil, nil
	for _, p := range n.moving {
		alone := *p
		alone.NodeName, alone.Unscheduled, alone.Deleting, alone.Nominated = "", true, time.Time{}, ""
		s.Pods = append(s.Pods, alone)
	}
	return ps.planSnapshot(s).Launches
}

// findTrial returns the command about the node that drifted first of those that a NodeRollout lets go, if there is one.
func (ps *pass) findTrial(mayAsk func() bool) (Command, bool) {
	var set []*stateNode
	for _, n := range ps.nodes {
		if n.awaitsTrial() && len(n.moving) > 0 && !n.inStaticPool() &&
			ps.candidates.mayDisrupt(n, v1.DisruptionDrifted) {
			set = append(set, n)
		}
	}
	slices.SortFunc(set, byDriftTime)
	for _, n := range set {
		if !mayAsk() || len(ps.budget.limitSet([]*stateNode{n}, v1.DisruptionDrifted)) == 0 {
			continue
		}
		if c, ok := ps.replaceForTrial(n); ok {
			return c, true
		}
	}
	return Command{}, false
}
