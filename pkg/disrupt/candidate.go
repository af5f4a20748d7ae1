package disrupt

import (
	"cmp"
	"fmt"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/interrupt"
)

// wordFault is the word for nodes that are left alone because the program fails about them.
const wordFault = "fault"

// screen decides which nodes may go, gracefully and because they drifted (spec core.md §6.2).
func (v *view) screen() {
	nominated := map[string]bool{}
	for _, x := range v.base.Existing {
		nominated[x.Node] = nominated[x.Node] || !v.virtual[x.Pod]
	}
	obstacles := v.s.Obstacles()
	for _, n := range v.nodes {
		n.barred = v.standing(n, nominated)
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

// standing is what keeps a node whatever its pods are.
func (v *view) standing(n *node, nominated map[string]bool) refuse {
	_, marked := markOf(*n.Claim)
	failed := v.failedWithin(n, v.rules().retryAfter)
	switch {
	case n.Node == nil:
		return refuse{"launching", "its node has not come yet"}
	case n.Condemned() || n.Claim.Is(v1.ConditionInstanceTerminating):
		return refuse{"leaving", "it is leaving already"}
	case v.aside[n.Claim.Name] != nil:
		return refuse{wordFault, "Joiner itself fails about its disruption, and leaves it alone so that others go: " + v.aside[n.Claim.Name].Why}
	case marked || n.Claim.Annotations[AnnotationReplaces] != "" && v.building[n.Claim.Annotations[AnnotationReplaces]]:
		return refuse{"underway", "a disruption that it takes part in is under way"}
	case interrupt.LeaveOf(*n.Claim).Stands(v.now()):
		return refuse{"notice", "a notice of EC2 has it replaced already"}
	case failed.word != "":
		return failed
	case !n.Initialized():
		return refuse{"starting", "it is not initialized yet"}
	case nominated[n.Name()]:
		return refuse{"nominated", "pods that wait are about to run on it"}
	case n.Node.Annotations[v1.AnnotationDoNotDisrupt] == "true":
		return refuse{"protected", "its node carries " + v1.AnnotationDoNotDisrupt}
	case n.Pool() == "":
		return refuse{"pool", "it belongs to no NodePool"}
	case n.pool == nil && v.asidePool[n.Pool()] != nil:
		return refuse{wordFault, "Joiner itself fails about its NodePool, and leaves its nodes alone: " + v.asidePool[n.Pool()].Why}
	case n.pool == nil:
		return refuse{"pool", "its NodePool " + n.Pool() + " does not exist"}
	case n.pool.Unseen:
		return refuse{"unseen", "its NodePool " + n.Pool() + " was changed and nobody has looked at that yet"}
	case len(v.types(*n.pool)) == 0:
		return refuse{"pool", "its NodePool " + n.Pool() + " has no instance types"}
	}
	return refuse{}
}

// open reports whether the node may go for the reason, is a case for it, and nothing else has it yet. It notes what keeps it.
func (v *view) open(n *node, reason v1.DisruptionReason) bool {
	switch {
	case n.taken, v.reports(n) != v.reporting:
		return false
	case reason == v1.DisruptionDrifted:
		return n.barredE.word == "" && n.Claim.Is(v1.ConditionDrifted)
	case n.barred.word != "", n.empty != (reason == v1.DisruptionEmpty):
		return false
	case n.empty && v.keeps[n.Name()]:
		n.kept = refuse{"buffer", "it has room that a CapacityBuffer keeps free"}
		return false
	}
	n.kept = v.lone(n)
	return n.kept.word == ""
}

// eligible are the nodes that are a case for each reason and may go.
func (v *view) eligible() map[v1.DisruptionReason][]string {
	out := map[v1.DisruptionReason][]string{}
	add := func(reason v1.DisruptionReason, n *node) { out[reason] = append(out[reason], n.Claim.Name) }
	for _, n := range v.nodes {
		if n.barredE.word == "" && n.Claim.Is(v1.ConditionDrifted) {
			add(v1.DisruptionDrifted, n)
		}
		switch {
		case n.barred.word != "", n.empty && v.keeps[n.Name()], v.lone(n).word != "":
		case n.empty:
			add(v1.DisruptionEmpty, n)
		default:
			add(v1.DisruptionUnderutilized, n)
		}
	}
	return out
}

// lone is what keeps a node from consolidation, whatever it would save (spec core.md §6.4).
func (v *view) lone(n *node) refuse {
	d := n.pool.Disruption
	failed := v.failedWithin(n, v.waitAfter(v.failures[n.Claim.Name]))
	switch until, settled := n.settled(); {
	case n.pool.Static:
		return refuse{"static", "its NodePool is static"}
	case d.Never:
		return refuse{"never", "its NodePool consolidates never"}
	case v.young(n):
		return refuse{"young", fmt.Sprintf("its pods have changed less than %s ago", d.After)}
	case !n.empty && d.Policy == string(v1.ConsolidationWhenEmpty):
		return refuse{"policy", "its NodePool consolidates empty nodes only"}
	case !n.empty && n.price <= 0:
		return refuse{"price", fmt.Sprintf("nobody knows what %s costs", n.offer)}
	case !n.empty && settled && v.now().Before(until):
		return refuse{"settled", "it replaced others and has not paid for that yet"}
	case !n.empty && failed.word != "":
		return failed
	}
	return refuse{}
}

// within leaves so many of the nodes as the budgets of their pools allow, in the order given.
func (v *view) within(set []*node, reason v1.DisruptionReason) []*node {
	used := map[string]int{}
	var out []*node
	for _, n := range set {
		if used[n.pool.Name] >= v.left[n.pool.Name][reason] {
			why := overBudget(reason)
			if reason == v1.DisruptionDrifted {
				n.drift = why
			} else {
				n.kept = cmp.Or(n.kept, why)
			}
			continue
		}
		used[n.pool.Name]++
		out = append(out, n)
	}
	return out
}

// claim takes the nodes of the command, and their share of the budgets for every reason.
func (v *view) claim(c Command) {
	v.world = 0
	v.moving = v.moving || v.moves(c)
	for _, l := range c.Launches {
		for _, p := range l.Pods {
			v.housed[p] = true
		}
	}
	for _, name := range c.Claims {
		n := v.byClaim[name]
		n.taken = true
		for r := range v.left[n.pool.Name] {
			v.left[n.pool.Name][r]--
		}
	}
}

// moves reports whether pods need room elsewhere when the command is begun. Those of static pools have it on the replacement.
func (v *view) moves(c Command) bool { return c.Moves+len(c.Launches) > 0 && !v.fixed(c.Claims) }

// reports reports whether the node is of a pool that wants to know and not to act.
func (v *view) reports(n *node) bool {
	return v.s.Rules.ReportDisruption || n.pool != nil && n.pool.Disruption.ReportOnly
}

// outlived is why a node stays that expires within budgets and has: nobody may replace it, and lifecycle leaves that to us.
func (v *view) outlived(n *node) refuse {
	switch {
	case n.pool == nil || !n.pool.Disruption.ExpireGently || !v.reports(n) || n.Deleting() || !n.Claim.Expired(v.now()):
		return refuse{}
	case n.pool.Disruption.Message != "":
		return refuse{"expired", "it has expired, and is not replaced until what its NodePool says about disruption can be understood: " + n.pool.Disruption.Message}
	}
	return refuse{"expired", "it has expired, and is not replaced while disruption of its NodePool is only reported"}
}

// queued is why a drifted node stays that may go and about which no answer was noted.
func (v *view) queued(n *node) refuse {
	if n.barredE.word != "" || !n.Claim.Is(v1.ConditionDrifted) {
		return refuse{}
	}
	return cmp.Or(v.unasked(n, v1.DisruptionDrifted), refuse{"turn", "other drifted nodes are looked at first"})
}

// unasked is why a node was not looked at that may go for the reason, nothing where that is not known.
func (v *view) unasked(n *node, reason v1.DisruptionReason) refuse {
	moving := v.moved
	if v.reports(n) {
		moving = v.moving
	}
	switch {
	case v.left[n.pool.Name][reason] <= 0:
		return overBudget(reason)
	case v.rules().steps == 0:
		return refuse{"late", noTime}
	case moving:
		return refuse{"turn", "pods of other nodes move first"}
	}
	return refuse{}
}

// overBudget is why a node stays that the budgets of its pool keep.
func overBudget(reason v1.DisruptionReason) refuse {
	return refuse{"budget", fmt.Sprintf("the budgets of its NodePool let no more nodes go now for reason %s", reason)}
}

// spared tells of every node that stays why it does.
func (v *view) spared() []Spared {
	var out []Spared
	for _, n := range v.nodes {
		why := v.outlived(n)
		if n.taken && why.word == "" {
			continue
		}
		why = cmp.Or(why, n.drift, v.queued(n), n.barred, n.kept)
		if why.word == "" { // it was not looked at
			why = v.lone(n)
		}
		if why.word == "" {
			reason := v1.DisruptionUnderutilized
			if n.empty {
				reason = v1.DisruptionEmpty
			}
			why = cmp.Or(v.unasked(n, reason), refuse{"worth", "nothing cheaper was found for its pods"})
		}
		s := Spared{Claim: n.Claim.Name, Pool: n.Pool(), Word: why.word, Why: why.why}
		if n.Node != nil {
			s.Node = n.Node.Name
		}
		out = append(out, s)
	}
	return out
}
