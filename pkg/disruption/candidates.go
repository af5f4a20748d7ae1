package disruption

import (
	"cmp"
	"fmt"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// candidates says of nodes whether they may go and are a case for a reason, and of those that stay why.
type candidates struct {
	state     *State
	budget    *Budget
	failures  map[string]CommandFailure // by NodeClaim
	inRow     map[string]FailuresInRow  // by NodePool
	ongoing   map[string]bool           // by id: commands under way that go on
	reporting bool                      // it is about pools that only report
}

// filterCandidates decides which nodes may go, gracefully and because they drifted.
func (cs *candidates) filterCandidates() {
	nominated := map[string]bool{}
	for _, x := range cs.state.base.Existing {
		nominated[x.Node] = nominated[x.Node] || !cs.state.virtual[x.Pod]
	}
	obstacles := cs.state.obstacles()
	for _, n := range cs.state.nodes {
		gracefully := cs.nodeRefusal(n, nominated)
		drifted := gracefully
		if gracefully.reason == "" {
			word, why := obstacles.Of(n.pods)
			gracefully = refusal{IneligibleReason(word), why}
			if n.Claim.TerminationGrace == nil {
				drifted = gracefully
			}
		}
		n.blockDisruption(gracefully, drifted)
	}
}

// nodeRefusal returns what keeps a node whatever its pods are.
func (cs *candidates) nodeRefusal(n *stateNode, nominated map[string]bool) refusal {
	_, marked := markOf(*n.Claim)
	failed := cs.failedWithin(n, cs.state.rules.retryAfter)
	switch {
	case n.Standby():
		return refusal{IneligibleBuffer, "it is stopped capacity of a CapacityBuffer, which provision replaces"}
	case n.Node == nil:
		return refusal{IneligibleLaunching, "its node has not come yet"}
	case n.MarkedForDeletion() || n.Claim.Is(v1.ConditionInstanceTerminating):
		return refusal{IneligibleLeaving, "it is leaving already"}
	case cs.state.faultyClaims[n.Claim.Name] != nil:
		return refusal{IneligibleFault, "Joiner itself fails about its disruption, and leaves it alone so that others " +
			"go: " + cs.state.faultyClaims[n.Claim.Name].Why}
	case marked || n.Claim.Annotations[AnnotationReplaces] != "" && cs.ongoing[n.Claim.Annotations[AnnotationReplaces]]:
		return refusal{IneligibleUnderWay, "a disruption that it takes part in is under way"}
	case interruption.LeaveOf(*n.Claim).StillHolds(cs.state.now()):
		return refusal{IneligibleNotice, "a notice of EC2 has it replaced already"}
	case failed.reason != "":
		return failed
	case !n.Initialized():
		return refusal{IneligibleStarting, "it is not initialized yet"}
	case nominated[n.Name()]:
		return refusal{IneligibleNominated, "pods that wait are about to run on it"}
	case n.Node.Annotations[v1.AnnotationDoNotDisrupt] == "true":
		return refusal{IneligibleProtected, "its node carries " + v1.AnnotationDoNotDisrupt}
	case n.Pool() == "":
		return refusal{IneligibleNoPool, "it belongs to no NodePool"}
	case n.pool == nil && cs.state.faultyPools[n.Pool()] != nil:
		return refusal{IneligibleFault, "Joiner itself fails about its NodePool, and leaves its nodes alone: " +
			cs.state.faultyPools[n.Pool()].Why}
	case n.pool == nil:
		return refusal{IneligibleNoPool, "its NodePool " + n.Pool() + " does not exist"}
	case n.pool.Unseen:
		return refusal{IneligiblePoolNotReconciled, "its NodePool " + n.Pool() +
			" was changed and nobody has looked at that yet"}
	case len(cs.state.types(*n.pool)) == 0:
		return refusal{IneligibleNoPool, "its NodePool " + n.Pool() + " has no instance types"}
	}
	return refusal{}
}

// mayDisrupt reports whether the node may go for the reason, is a case for it, and is not taken yet. It records what
// keeps it.
func (cs *candidates) mayDisrupt(n *stateNode, reason v1.DisruptionReason) bool {
	switch {
	case n.taken, cs.state.isReportOnly(n) != cs.reporting:
		return false
	case reason == v1.DisruptionDrifted:
		if n.driftBlocked.reason != "" || !n.Claim.Is(v1.ConditionDrifted) {
			return false
		}
		held := cmp.Or(cs.rolloutRefusal(n), cs.poolRefusal(n))
		n.refuseReplacement(held)
		return held.reason == ""
	case n.blocked.reason != "", n.empty != (reason == v1.DisruptionEmpty):
		return false
	case n.empty && cs.state.keepsRoom[n.Name()]:
		n.reviewConsolidation(refusal{IneligibleBuffer, "it has room that a CapacityBuffer keeps free"})
		return false
	}
	n.reviewConsolidation(cs.consolidationRefusal(n))
	return n.notConsolidated.reason == ""
}

// eligibleByReason returns the NodeClaims that may go and are a case for each reason, whatever budgets and prices say.
func (cs *candidates) eligibleByReason() map[v1.DisruptionReason][]string {
	out := map[v1.DisruptionReason][]string{}
	add := func(reason v1.DisruptionReason, n *stateNode) { out[reason] = append(out[reason], n.Claim.Name) }
	for _, n := range cs.state.nodes {
		if n.driftBlocked.reason == "" && n.Claim.Is(v1.ConditionDrifted) && cs.rolloutRefusal(n).reason == "" {
			add(v1.DisruptionDrifted, n)
		}
		switch {
		case n.blocked.reason != "", n.empty && cs.state.keepsRoom[n.Name()], cs.consolidationRefusal(n).reason != "":
		case n.empty:
			add(v1.DisruptionEmpty, n)
		default:
			add(v1.DisruptionUnderutilized, n)
		}
	}
	return out
}

// consolidationRefusal returns what keeps a node from consolidation, whatever it would save.
func (cs *candidates) consolidationRefusal(n *stateNode) refusal {
	d := n.pool.Disruption
	failed := cs.failedWithin(n, cs.state.rules.waitAfter(cs.failures[n.Claim.Name]))
	switch until, settled := n.consolidatableAt(); {
	case n.pool.Static:
		return refusal{IneligibleStaticPool, "its NodePool is static"}
	case d.Never:
		return refusal{IneligibleNever, "its NodePool consolidates never"}
	case cs.state.changedRecently(n):
		return refusal{IneligibleConsolidateAfter, fmt.Sprintf("its pods have changed less than %s ago", d.After)}
	case !n.empty && d.Policy == string(v1.ConsolidationWhenEmpty):
		return refusal{IneligiblePolicy, "its NodePool consolidates empty nodes only"}
	case !n.empty && n.price <= 0:
		return refusal{IneligibleUnknownPrice, fmt.Sprintf("nobody knows what %s costs", n.offering)}
	case !n.empty && settled && cs.state.now().Before(until):
		return refusal{IneligiblePaybackPending, "it replaced others and has not paid for that yet"}
	case !n.empty && failed.reason != "":
		return failed
	case !n.empty:
		return cs.poolRefusal(n)
	}
	return refusal{}
}

// takeBudgets takes the nodes of the command, and their share of the budgets for every reason.
func (ps *pass) takeBudgets(c Command) {
	ps.eval.inputs = 0
	ps.moving = ps.moving || ps.state.movesPods(c)
	for _, l := range c.Launches {
		for _, p := range l.Pods {
			ps.eval.podsWithLaunch[p] = true
		}
	}
	for _, name := range c.Claims {
		n := ps.state.byClaim[name]
		n.take()
		ps.budget.Take(n.pool.Name)
	}
	ps.takeSlots(c)
}

// isReportOnly reports whether the node is of a pool that wants to know and not to act.
func (st *State) isReportOnly(n *stateNode) bool {
	return st.snapshot.Rules.ReportDisruption || n.pool != nil && n.pool.Disruption.ReportOnly
}

// expiredRefusal returns why an expired node stays whose pool expires within budgets and is only reported about.
// lifecycle leaves such nodes to this package.
func (cs *candidates) expiredRefusal(n *stateNode) refusal {
	switch {
	case n.pool == nil || !n.pool.Disruption.ExpireGently || !cs.state.isReportOnly(n) || n.Deleting() ||
		!n.Claim.Expired(cs.state.now()):
		return refusal{}
	case n.pool.Disruption.Message != "":
		return refusal{IneligibleExpired, "it has expired, and is not replaced until what its NodePool says about disruption can be understood: " + n.pool.Disruption.Message}
	}
	return refusal{IneligibleExpired, "it has expired, and is not replaced while disruption of its NodePool is only reported"}
}

// driftRefusal returns why a drifted node stays that may go and has no other answer yet.
func (cs *candidates) driftRefusal(n *stateNode, moves podMoves) refusal {
	if n.driftBlocked.reason != "" || !n.Claim.Is(v1.ConditionDrifted) {
		return refusal{}
	}
	return cmp.Or(cs.defaultRefusal(n, v1.DisruptionDrifted, moves),
		refusal{IneligibleOtherCommand, "other drifted nodes are looked at first"})
}

// defaultRefusal returns why a node was not looked at that may go for the reason, or nothing where that is not known.
func (cs *candidates) defaultRefusal(n *stateNode, reason v1.DisruptionReason, moves podMoves) refusal {
	moving := moves.acting
	if cs.state.isReportOnly(n) {
		moving = moves.reported
	}
	switch {
	case cs.budget.Left(n.pool.Name, reason) <= 0:
		return cs.budget.refusal(n.pool.Name, reason)
	case cs.state.rules.steps == 0:
		return refusal{IneligibleOverruns, noTime}
	case moving:
		return refusal{IneligibleOtherCommand, "pods of other nodes move first"}
	}
	return refusal{}
}

// listNotDisrupted returns every node that stays, with its reason.
func (cs *candidates) listNotDisrupted(moves podMoves) []NotDisrupted {
	var out []NotDisrupted
	for _, n := range cs.state.nodes {
		why := cs.expiredRefusal(n)
		if n.taken && why.reason == "" {
			continue
		}
		why = cmp.Or(why, n.notReplaced, cs.driftRefusal(n, moves), n.blocked, n.notConsolidated)
		if why.reason == "" { // it was not looked at
			why = cs.consolidationRefusal(n)
		}
		if why.reason == "" {
			reason := v1.DisruptionUnderutilized
			if n.empty {
				reason = v1.DisruptionEmpty
			}
			why = cmp.Or(cs.defaultRefusal(n, reason, moves),
				refusal{IneligibleNoCheaperAlternative, "nothing cheaper was found for its pods"})
		}
		s := NotDisrupted{Claim: n.Claim.Name, Pool: n.Pool(), Reason: why.reason, Why: why.why}
		if n.Node != nil {
			s.Node = n.Node.Name
		}
		out = append(out, s)
	}
	return out
}
