package disruption

import (
	"cmp"
	"fmt"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/nodeclaim/interruption"
)

// wordFault is the word for nodes that are left alone because the program fails about them.
const wordFault = "fault"

// filterCandidates decides which nodes may go, gracefully and because they drifted.
func (v *state) filterCandidates() {
	nominated := map[string]bool{}
	for _, x := range v.base.Existing {
		nominated[x.Node] = nominated[x.Node] || !v.virtual[x.Pod]
	}
	obstacles := v.s.Obstacles()
	for _, n := range v.nodes {
		n.barred = v.nodeRefusal(n, nominated)
		n.barredE = n.barred
		if n.barred.word != "" {
			continue
		}
		n.barred.word, n.barred.why = obstacles.Of(n.pods)
		if n.Claim.TerminationGrace == nil {
			n.barredE = n.barred
		}
	}
}

// nodeRefusal is what keeps a node whatever its pods are.
func (v *state) nodeRefusal(n *stateNode, nominated map[string]bool) refusal {
	_, marked := markOf(*n.Claim)
	failed := v.failedWithin(n, v.rules().retryAfter)
	switch {
	case n.Node == nil:
		return refusal{"launching", "its node has not come yet"}
	case n.MarkedForDeletion() || n.Claim.Is(v1.ConditionInstanceTerminating):
		return refusal{"leaving", "it is leaving already"}
	case v.aside[n.Claim.Name] != nil:
		return refusal{wordFault, "Joiner itself fails about its disruption, and leaves it alone so that others go: " + v.aside[n.Claim.Name].Why}
	case marked || n.Claim.Annotations[AnnotationReplaces] != "" && v.building[n.Claim.Annotations[AnnotationReplaces]]:
		return refusal{"underway", "a disruption that it takes part in is under way"}
	case interruption.LeaveOf(*n.Claim).StillHolds(v.now()):
		return refusal{"notice", "a notice of EC2 has it replaced already"}
	case failed.word != "":
		return failed
	case !n.Initialized():
		return refusal{"starting", "it is not initialized yet"}
	case nominated[n.Name()]:
		return refusal{"nominated", "pods that wait are about to run on it"}
	case n.Node.Annotations[v1.AnnotationDoNotDisrupt] == "true":
		return refusal{"protected", "its node carries " + v1.AnnotationDoNotDisrupt}
	case n.Pool() == "":
		return refusal{"pool", "it belongs to no NodePool"}
	case n.pool == nil && v.asidePool[n.Pool()] != nil:
		return refusal{wordFault, "Joiner itself fails about its NodePool, and leaves its nodes alone: " + v.asidePool[n.Pool()].Why}
	case n.pool == nil:
		return refusal{"pool", "its NodePool " + n.Pool() + " does not exist"}
	case n.pool.Unseen:
		return refusal{"unseen", "its NodePool " + n.Pool() + " was changed and nobody has looked at that yet"}
	case len(v.types(*n.pool)) == 0:
		return refusal{"pool", "its NodePool " + n.Pool() + " has no instance types"}
	}
	return refusal{}
}

// mayDisrupt reports whether the node may go for the reason, is a case for it, and nothing else has it yet. It notes what keeps it.
func (v *state) mayDisrupt(n *stateNode, reason v1.DisruptionReason) bool {
	switch {
	case n.taken, v.isReportOnly(n) != v.reporting:
		return false
	case reason == v1.DisruptionDrifted:
		return n.barredE.word == "" && n.Claim.Is(v1.ConditionDrifted)
	case n.barred.word != "", n.empty != (reason == v1.DisruptionEmpty):
		return false
	case n.empty && v.keeps[n.Name()]:
		n.kept = refusal{"buffer", "it has room that a CapacityBuffer keeps free"}
		return false
	}
	n.kept = v.consolidationRefusal(n)
	return n.kept.word == ""
}

// countEligible are the nodes that are a case for each reason and may go.
func (v *state) countEligible() map[v1.DisruptionReason][]string {
	out := map[v1.DisruptionReason][]string{}
	add := func(reason v1.DisruptionReason, n *stateNode) { out[reason] = append(out[reason], n.Claim.Name) }
	for _, n := range v.nodes {
		if n.barredE.word == "" && n.Claim.Is(v1.ConditionDrifted) {
			add(v1.DisruptionDrifted, n)
		}
		switch {
		case n.barred.word != "", n.empty && v.keeps[n.Name()], v.consolidationRefusal(n).word != "":
		case n.empty:
			add(v1.DisruptionEmpty, n)
		default:
			add(v1.DisruptionUnderutilized, n)
		}
	}
	return out
}

// consolidationRefusal is what keeps a node from consolidation, whatever it would save.
func (v *state) consolidationRefusal(n *stateNode) refusal {
	d := n.pool.Disruption
	failed := v.failedWithin(n, v.waitAfter(v.failures[n.Claim.Name]))
	switch until, settled := n.consolidatableAt(); {
	case n.pool.Static:
		return refusal{"static", "its NodePool is static"}
	case d.Never:
		return refusal{"never", "its NodePool consolidates never"}
	case v.isYoung(n):
		return refusal{"young", fmt.Sprintf("its pods have changed less than %s ago", d.After)}
	case !n.empty && d.Policy == string(v1.ConsolidationWhenEmpty):
		return refusal{"policy", "its NodePool consolidates empty nodes only"}
	case !n.empty && n.price <= 0:
		return refusal{"price", fmt.Sprintf("nobody knows what %s costs", n.offer)}
	case !n.empty && settled && v.now().Before(until):
		return refusal{"settled", "it replaced others and has not paid for that yet"}
	case !n.empty && failed.word != "":
		return failed
	}
	return refusal{}
}

// takeBudgets takes the nodes of the command, and their share of the budgets for every reason.
func (v *state) takeBudgets(c Command) {
	v.world = 0
	v.moving = v.moving || v.movesPods(c)
	for _, l := range c.Launches {
		for _, p := range l.Pods {
			v.housed[p] = true
		}
	}
	for _, name := range c.Claims {
		n := v.byClaim[name]
		n.taken = true
		v.budget.Take(n.pool.Name)
	}
}

// movesPods reports whether pods need room elsewhere when the command is begun. Those of static pools have it on the replacement.
func (v *state) movesPods(c Command) bool {
	return c.Moves+len(c.Launches) > 0 && !v.isStaticCommand(c.Claims)
}

// isReportOnly reports whether the node is of a pool that wants to know and not to act.
func (v *state) isReportOnly(n *stateNode) bool {
	return v.s.Rules.ReportDisruption || n.pool != nil && n.pool.Disruption.ReportOnly
}

// expiredRefusal is why a node stays that expires within budgets and has: nobody may replace it, and lifecycle leaves that to us.
func (v *state) expiredRefusal(n *stateNode) refusal {
	switch {
	case n.pool == nil || !n.pool.Disruption.ExpireGently || !v.isReportOnly(n) || n.Deleting() || !n.Claim.Expired(v.now()):
		return refusal{}
	case n.pool.Disruption.Message != "":
		return refusal{"expired", "it has expired, and is not replaced until what its NodePool says about disruption can be understood: " + n.pool.Disruption.Message}
	}
	return refusal{"expired", "it has expired, and is not replaced while disruption of its NodePool is only reported"}
}

// queued is why a drifted node stays that may go and about which no answer was noted.
func (v *state) queued(n *stateNode) refusal {
	if n.barredE.word != "" || !n.Claim.Is(v1.ConditionDrifted) {
		return refusal{}
	}
	return cmp.Or(v.defaultRefusal(n, v1.DisruptionDrifted), refusal{"turn", "other drifted nodes are looked at first"})
}

// defaultRefusal is why a node was not looked at that may go for the reason, nothing where that is not known.
func (v *state) defaultRefusal(n *stateNode, reason v1.DisruptionReason) refusal {
	moving := v.moved
	if v.isReportOnly(n) {
		moving = v.moving
	}
	switch {
	case v.budget.Left(n.pool.Name, reason) <= 0:
		return budgetRefusal(reason)
	case v.rules().steps == 0:
		return refusal{"late", noTime}
	case moving:
		return refusal{"turn", "pods of other nodes move first"}
	}
	return refusal{}
}

// listNotDisrupted tells of every node that stays why it does.
func (v *state) listNotDisrupted() []NotDisrupted {
	var out []NotDisrupted
	for _, n := range v.nodes {
		why := v.expiredRefusal(n)
		if n.taken && why.word == "" {
			continue
		}
		why = cmp.Or(why, n.drift, v.queued(n), n.barred, n.kept)
		if why.word == "" { // it was not looked at
			why = v.consolidationRefusal(n)
		}
		if why.word == "" {
			reason := v1.DisruptionUnderutilized
			if n.empty {
				reason = v1.DisruptionEmpty
			}
			why = cmp.Or(v.defaultRefusal(n, reason), refusal{"worth", "nothing cheaper was found for its pods"})
		}
		s := NotDisrupted{Claim: n.Claim.Name, Pool: n.Pool(), Word: why.word, Why: why.why}
		if n.Node != nil {
			s.Node = n.Node.Name
		}
		out = append(out, s)
	}
	return out
}
