package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/objects"
)

// checkNodeOurs: only nodes of ours are changed.
func checkNodeOurs(_ *world, s nodeChanged) []string {
	if s.node.machine != nil && !s.node.machine.foreign {
		return nil
	}
	return broken("node %s of somebody else is %s", s.node.Name, s.what)
}

// checkNodeRelease: nothing runs on a node any more that loses our finalizer.
func checkNodeRelease(w *world, s nodeReleased) []string {
	// who releases the node of a stopped instance may not know yet that somebody has started it
	if m := s.node.machine; m == nil || m.Gone() || isIdle(w, m) || time.Since(m.restarted) < late {
		return nil
	}
	return broken("node %s is released while %s runs", s.node.Name, s.node.machine.ID)
}

// checkClaimRelease: the instance of a claim that loses our finalizer is gone, or at least told to go where lists do
// not show it yet.
func checkClaimRelease(w *world, s claimReleased) (bad []string) {
	c := s.claim
	leaves := func(m *machine) bool {
		return m.owner == c.UID && m.State == "shutting-down" && time.Since(m.showAt) > late
	}
	for _, m := range selectInOrder(w.ec2.machines, leaves) {
		bad = append(bad, fmt.Sprintf("claim %s is released while %s is shutting down", c.Name, m.ID))
	}
	for _, m := range w.ec2.livingInstances() {
		if m.owner != c.UID || m.asked {
			continue
		}
		if time.Since(m.showAt) > late {
			bad = append(bad, fmt.Sprintf("claim %s is released while %s runs", c.Name, m.ID))
		}
		if c.ProviderID == m.ProviderID() {
			bad = append(bad, fmt.Sprintf("claim %s is released while %s runs, which it names", c.Name, m.ID))
		}
	}
	return bad
}

// checkInstanceOurs: only instances of ours are ended.
func checkInstanceOurs(_ *world, s instanceTerminated) []string {
	if !s.machine.foreign {
		return nil
	}
	return broken("%s ends %s of somebody else", s.by, s.machine.ID)
}

// checkInstanceUnneeded: no instance is ended that runs for a claim which nobody deletes.
func checkInstanceUnneeded(w *world, s instanceTerminated) []string {
	c := servedBy(w, s.machine)
	if c == nil || !c.Deleting.IsZero() {
		return nil
	}
	return broken("%s ends %s, which claim %s needs", s.by, s.machine.ID, c.Name)
}

// checkInstanceDrained: nothing runs on an instance that is ended for which the drain waits.
func checkInstanceDrained(w *world, s instanceTerminated) []string {
	m := s.machine
	c := servedBy(w, m)
	if c == nil || !c.Deleting.IsZero() && time.Since(m.node.Created) < seconds {
		return nil // or it joined after whoever acts now had read
	}
	for _, p := range w.api.podsOn(m.node.Name) {
		stuck := p.Terminating() && time.Now().After(p.Deleting.Add(50*time.Second))
		if p.Terminal() || p.Owner == cluster.OwnerNode || stuck ||
			len(cluster.Untolerated([]cluster.Taint{objects.DisruptedTaint()}, p.Tolerations)) == 0 {
			continue
		}
		return broken("%s ends %s while pod %s runs there", s.by, m.ID, p.Key())
	}
	return nil
}

// servedBy is the claim whose node runs on the instance and may not be ended by force; nil if there is none.
func servedBy(w *world, m *machine) *claim {
	n, c := m.node, w.api.byUID[m.owner]
	if m.foreign || n == nil || n.down || !n.Ready || w.api.nodes[n.Name] != n || c == nil ||
		w.api.claims[c.Name] != c || graceExpired(c) || w.ec2.isUnsound(m) {
		return nil
	}
	return c
}

// graceExpired reports whether the grace period of a claim is over.
func graceExpired(c *claim) bool {
	return c.TerminationGrace != nil && !c.Deleting.IsZero() &&
		!time.Now().Before(c.Deleting.Add(*c.TerminationGrace-5*time.Second))
}

// checkClassFinalizer: nothing is made for a class that nothing keeps from vanishing.
func checkClassFinalizer(w *world, s classResolved) []string {
	if have := w.api.classes[s.name]; have == nil || len(have.Finalizers) > 0 {
		return nil
	}
	return broken("an instance profile is made for class %s, which nothing keeps from vanishing", s.name)
}

// checkClassForgotten: what was made for a class stays while a claim needs it.
func checkClassForgotten(w *world, s classForgotten) (bad []string) {
	for _, name := range slices.Sorted(maps.Keys(w.api.claims)) {
		if w.api.claims[name].Class == s.name {
			bad = append(bad, fmt.Sprintf("the instance profile of class %s goes while claim %s needs it", s.name,
				name))
		}
	}
	return bad
}

// checkClassReleased: nothing is left of what was made for a class that goes.
func checkClassReleased(w *world, s classReleased) []string {
	if _, left := w.account.profiles["profile-"+s.name]; left {
		return broken("class %s is released while its instance profile is there", s.name)
	}
	return nil
}
