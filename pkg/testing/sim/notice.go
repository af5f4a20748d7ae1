package sim

import (
	"time"

	v1 "joiner/pkg/api/v1"
)

// checkHandled looks at an urgent notice whose handler came to its end without any fault: the claim is condemned.
func (w *world) checkHandled(inv *invocation) {
	m := w.machines[inv.event.Instance]
	if inv.faulty || inv.err != nil || m == nil || m.Gone() || inv.event.Kind != EventSpot &&
		inv.event.Kind != EventReservation {
		return
	}
	if c := w.byUID[m.owner]; c != nil && w.claims[c.Name] == c && c.ProviderID != "" && c.Deleting.IsZero() {
		w.addViolation("notice without effect", "%s handled the notice about %s, and claim %s goes on", inv, m.ID,
			c.Name)
	}
}

// checkGrace looks at the grace period that a pod gets on a node that runs: all of its own, unless the node ends
// before.
func (w *world) checkGrace(p *pod, graceSec int64) {
	n := w.nodes[p.NodeName]
	if n == nil || n.down || n.machine == nil || p.Terminating() || graceSec >= p.GraceSec {
		return
	}
	c := w.byUID[n.machine.owner]
	if c == nil {
		return
	}
	end, err := time.Parse(time.RFC3339, c.Annotations[v1.AnnotationTerminationTimestamp])
	if err != nil {
		// the instance is ending, or its claim has no deadline that could cut it short: deletions past budgets are
		// judged elsewhere
		return
	}
	if got := time.Duration(graceSec) * time.Second; time.Now().Add(got + seconds + 2*w.plan.skew).Before(end) {
		w.addViolation("grace cut short", "pod %s gets %d s of %d on %s, which ends in %s", p.Key(), graceSec,
			p.GraceSec, n.Name, time.Until(end))
	}
}
