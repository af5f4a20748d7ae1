package disruption

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/rollout"
	"joiner.sh/pkg/scheduling/binpack"
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
func (cs *candidates) rolloutRefusal(n *stateNode) refusal {
	if !n.driftedByClass() {
		return refusal{}
	}
	r := n.pool.Rollout
	switch own := r.RevisionOf(*n.Claim); {
	case n.awaitsTrial() && own == r.Try, !n.awaitsTrial() && own == r.ComparedWith(*n.Claim):
		return refusal{IneligibleRollout, "NodeRollout " + r.Name + " leaves nodes of revision " + own + " as they are"}
	case n.awaitsTrial() && len(n.moving) > 0 && cs.budget.slotsLeft(*r) <= 0:
		return refusal{IneligibleRollout, "the step of NodeRollout " + r.Name + " allows no more nodes of revision " + r.Try}
	}
	return refusal{}
}

// isPrevious reports whether a NodeRollout tries a revision that the node does not have.
func (n *stateNode) isPrevious() bool {
	if n.pool == nil || n.pool.Rollout == nil {
		return false
	}
	r := n.pool.Rollout
	return r.Try != "" && r.DriftTo == r.Try && r.RevisionOf(*n.Claim) != r.Try
}

// hasFailed reports whether the revision of the node's claim failed in the NodeRollout of its pool.
func (n *stateNode) hasFailed() bool {
	return n.pool != nil && n.pool.Rollout != nil && n.pool.Rollout.Failed != "" &&
		n.pool.Rollout.RevisionOf(*n.Claim) == n.pool.Rollout.Failed
}

// isHalted reports whether the node stays as the NodeRollout was halted with it.
func (n *stateNode) isHalted() bool { return n.hasFailed() && n.pool.Rollout.DriftTo == "" }

// isTried reports whether the node has the revision that a NodeRollout tries. Where a command that made it is taken
// back it stays all the same: it is one of those that the step allows, and shows what the revision is worth.
func (n *stateNode) isTried() bool {
	return n.pool != nil && n.pool.Rollout != nil && n.pool.Rollout.Try != "" && !n.hasFailed() &&
		n.pool.Rollout.RevisionOf(*n.Claim) == n.pool.Rollout.Try
}

// isRolledBack reports whether a NodeRollout has the node replaced because its revision failed.
func (n *stateNode) isRolledBack() bool {
	return n.pool != nil && n.pool.Rollout != nil &&
		slices.Contains(n.pool.Rollout.RolledBack, n.pool.Rollout.RevisionOf(*n.Claim))
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

// slotsLeft returns the number of nodes that the step still allows in this pass.
func (b *Budget) slotsLeft(r cluster.PoolRollout) int { return r.Slots - b.tried[r.Name] }

// takeSlots counts the launches of the command that get a revision which is tried.
func (ps *pass) takeSlots(c Command) {
	for _, l := range c.Launches {
		if p, ok := ps.state.snapshot.PoolOf(l.Pool); ok && p.Rollout != nil && p.Rollout.Try != "" &&
			l.Annotations[v1.AnnotationNodeRevision] == p.Rollout.Try {
			if ps.budget.tried == nil {
				ps.budget.tried = map[string]int{}
			}
			ps.budget.tried[p.Rollout.Name]++
		}
	}
}

// replaceForTrial returns the command that replaces the node by nodes of the revision that is tried. Where its pods fit
// on others, or need more nodes than the step allows, they get one that has room for all of them. Where nobody sells
// such a node, with split as many as the step allows have the revision, and the rest the last good one.
func (ps *pass) replaceForTrial(n *stateNode, split bool) (Command, bool) {
	r := n.pool.Rollout
	slots := ps.budget.slotsLeft(*r)
	if slots <= 0 {
		n.refuseReplacement(ps.candidates.rolloutRefusal(n))
		return Command{}, false
	}
	c, ok := ps.replaceDrifted(ps.eval.trialBaseline(), []*stateNode{n})
	if !ok {
		return c, false
	}
	launches := ps.splitByRollout(c.Launches, r.Name)
	if count := len(launches.mine); count == 0 || count > slots {
		one, wait := ps.launchForAll(n)
		switch {
		case one != nil:
			launches = rolloutLaunches{mine: []plan.Launch{*one}}
		case wait, count > 0 && !split:
			n.refuseTrial(refusal{IneligibleRollout, fmt.Sprintf("its pods need %d nodes of revision %s, and the step "+
				"of NodeRollout %s allows %d", max(count, 1), r.Try, r.Name, slots)}, !wait)
			return Command{}, false
		}
	}
	// those with most pods first: the pods on the rest have to move once more
	slices.SortStableFunc(launches.mine, func(a, b plan.Launch) int { return len(b.Pods) - len(a.Pods) })
	for i := range launches.mine[:min(len(launches.mine), slots)] {
		launches.mine[i] = rollout.WithRevision(launches.mine[i], r.Try)
	}
	return ps.state.newCommand([]*stateNode{n}, v1.DisruptionDrifted, append(launches.mine, launches.others...)), true
}

// rolloutLaunches are launches of NodePools of a NodeRollout, and others.
type rolloutLaunches struct{ mine, others []plan.Launch }

func (ps *pass) splitByRollout(all []plan.Launch, name string) (out rolloutLaunches) {
	for _, l := range all {
		if p, ok := ps.state.snapshot.PoolOf(l.Pool); ok && p.Rollout != nil && p.Rollout.Name == name {
			out.mine = append(out.mine, l)
		} else {
			out.others = append(out.others, l)
		}
	}
	return out
}

// launchForAll returns the cheapest launch of the NodePools of the node's NodeRollout that has room for all pods of the
// node; nil where there is none. Where EC2 has refused one that has a moment ago, wait is true.
func (ps *pass) launchForAll(n *stateNode) (one *plan.Launch, wait bool) {
	var need resources.List
	for _, p := range n.moving {
		need = need.Add(p.NextNeed())
	}
	s := ps.eval.isolatePods(ps.eval.driftBaseline, n.moving, []*stateNode{n}, nil)
	s.Pools = nil
	for _, p := range ps.state.snapshot.Pools {
		if p.Rollout == nil || p.Rollout.Name != n.pool.Rollout.Name || p.Static {
			continue
		}
		var large []string
		for _, t := range ps.state.types(p) {
			if need.FitsIn(t.Allocatable) {
				large = append(large, t.Name)
				wait = wait || slices.ContainsFunc(t.Offerings, func(o instancetypes.Offering) bool {
					return isRefused(ps.state.snapshot, p, o)
				})
			}
		}
		if len(large) > 0 {
			p.Requirements = p.Requirements.And(requirements.Of(corev1.LabelInstanceTypeStable, large...))
			s.Pools = append(s.Pools, p)
		}
	}
	if len(s.Pools) == 0 {
		return nil, false
	}
	p := ps.eval.withinVolumeLimits(binpack.PodsFrom(s, ps.state.sells), []*stateNode{n}, nil)
	ps.eval.meter.countQuestion(len(n.moving), p)
	if len(p.Unplaced) > 0 || len(p.Launches) != 1 {
		return nil, wait
	}
	return &p.Launches[0], false
}

// isRefused reports whether EC2 refused the offering, which the pool may launch, so recently that nobody asks for it.
func isRefused(s cluster.Snapshot, p cluster.Pool, o instancetypes.Offering) bool {
	return p.Requirements.Has(v1.LabelCapacityType, o.CapacityType) &&
		p.Requirements.Has(corev1.LabelTopologyZone, o.Zone) &&
		slices.ContainsFunc(s.Unavailable, func(u instancetypes.UnavailableOffering) bool {
			return u.Covers(o.OfferingKey, s.Now)
		})
}

// findTrial returns the command about a node that a NodeRollout lets go, if there is one: of those that drifted first,
// from the node on that was asked about last, which the step has room for. Where no node can go otherwise, the pods of
// one are divided among nodes of the revision that is tried and of the last good one.
func (ps *pass) findTrial(m *Memory, mayAsk func() bool) (Command, bool) {
	set := lists.Where(ps.state.nodes, func(n *stateNode) bool {
		return n.awaitsTrial() && len(n.moving) > 0 && !n.inStaticPool() &&
			ps.candidates.mayDisrupt(n, v1.DisruptionDrifted)
	})
	if len(set) == 0 {
		return Command{}, false
	}
	slices.SortFunc(set, byDriftTime)
	first := 1 + slices.IndexFunc(set, func(n *stateNode) bool { return n.Claim.Name == m.Tried })
	for _, n := range slices.Concat(set[first:], set[:first]) {
		if !mayAsk() {
			break
		}
		if len(ps.budget.limitSet([]*stateNode{n}, v1.DisruptionDrifted)) == 0 {
			continue
		}
		m.Tried = n.Claim.Name
		if c, ok := ps.replaceForTrial(n, false); ok {
			return c, true
		}
	}
	if i := slices.IndexFunc(set, func(n *stateNode) bool { return n.needsSplit }); i >= 0 {
		return ps.replaceForTrial(set[i], true)
	}
	return Command{}, false
}
