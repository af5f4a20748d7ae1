package sim

import (
	"slices"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/nodeclaim/interruption"
)

// checkLeave looks at a claim that provision or disrupt condemns without need: there is a place for its pods on nodes
// that are ready, and the pool's budget holds. Pods that were bound just now may have taken a place since provision
// looked.
func (w *world) checkLeave(by *invocation, c *claim) {
	n := w.nodeOf(c)
	left := by.fn.Name == "disrupt" || by.fn.Name == "provision" && interruption.LeaveOf(c.Claim).Cause != ""
	pool, _ := w.poolOf(c.Pool)
	// the number of nodes of a static pool matters, not where their pods go
	if n == nil || w.isDying(n) || !left || pool.Static {
		return
	}
	w.checkGuarded(by, n)
	waived := goesForDrift(c) && c.TerminationGrace != nil // protected pods get no other place
	for _, p := range w.podsOn(n.Name) {
		if waived && p.Protected(time.Now().Add(-w.plan.skew-seconds)) {
			continue
		}
		if p.Terminating() || p.app.daemon || p.Owner == cluster.OwnerNode || time.Since(p.Started) < seconds ||
			len(p.Spread) > 0 && w.isScattering(p.app) {
			continue
		}
		free := false
		p.NodeName = "" // it does not stand in its own way, nor does the node in that of a spread once it is gone
		delete(w.nodes, n.Name)
		back := w.moveKin(p, n)
		for _, other := range w.nodes {
			// The scheduler counts nodes that are on their way out for spreads, until they are gone.
			why := w.willRefuse(p, other)
			free = free || why == "" || why == "spread" && w.someoneLeaves(n) || time.Since(other.bound) < late ||
				w.noticedLately(other)
		}
		why := w.whyNot(p)
		back()
		p.NodeName, w.nodes[n.Name] = n.Name, n
		if !free {
			w.addViolation("removal before replacement", "claim %s is condemned while pod %s has no other place%s",
				c.Name, p.Key(), why)
		}
	}
	if by.fn.Name == "disrupt" { // which takes of its budget when it begins
		w.checkReplaced(c)
	} else {
		w.checkBudget(c)
	}
}

// noticedLately reports whether a notice had the node's claim condemned since whoever acts now has read.
func (w *world) noticedLately(n *node) bool {
	if n.machine == nil {
		return false
	}
	c := w.byUID[n.machine.owner]
	return c != nil && !c.condemned.IsZero() && time.Since(c.condemned) < seconds
}

// droppedLately reports whether somebody deleted the node's claim since whoever acts now has read.
func (w *world) droppedLately(n *node) bool {
	if n.machine == nil {
		return false
	}
	c := w.byUID[n.machine.owner]
	return c != nil && !c.dropped.IsZero() && time.Since(c.dropped) < seconds
}

// isScattering reports whether pods of the app have no node yet: where they come to decides where its others may be.
func (w *world) isScattering(a *app) bool {
	for _, p := range w.pods {
		if p.app.pattern.Labels["app"] == a.pattern.Labels["app"] && p.NodeName == "" {
			return true
		}
	}
	return false
}

// someoneLeaves reports whether another node than that one is on its way out.
func (w *world) someoneLeaves(but *node) bool {
	for _, n := range w.nodes {
		if n != but && (!n.Deleting.IsZero() || slices.Contains(n.Taints, disruptedTaint())) {
			return true
		}
	}
	return false
}

// checkBudget looks at a claim whose node is about to be taken out of service by choice: the pool's budget holds. A
// notice waits for no budget and neither does a user, and whoever decides does not know of what came since it read.
func (w *world) checkBudget(c *claim) {
	pool, _ := w.poolOf(c.Pool)
	away := 1
	for _, other := range w.claims {
		host := w.nodeOf(other)
		if time.Since(other.condemned) < seconds || time.Since(other.dropped) < seconds {
			continue
		}
		if other != c && other.Pool == c.Pool && host != nil &&
			(!other.Deleting.IsZero() || slices.Contains(host.Taints, disruptedTaint())) &&
			// nodes that budgets count
			other.Is(v1.ConditionInitialized) && !other.Is(v1.ConditionInstanceTerminating) {
			away++
		}
	}
	justChanged := time.Since(w.plan.budgetSince) < late // and whoever acts now has read the budget of before
	most := w.plan.budget
	if most > 0 && len(pool.Disruption.Budgets) > 0 && away > most && !justChanged {
		w.addViolation("budget of the pool", "with %s %d nodes of pool %s go, %d may", c.Name, away, pool.Name, most)
	}
}
