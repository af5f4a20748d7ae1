package sim

import (
	"time"

	v1 "joiner.sh/pkg/api/v1"
)

// checkEvictionTaint: pods are evicted from nodes that take no pods any more.
func checkEvictionTaint(w *world, s podEvicted) []string {
	n := w.api.nodes[s.pod.NodeName]
	// who evicts and who takes a disruption back may not know of each other yet
	if n == nil || n.isTainted() || time.Since(n.untainted) <= seconds {
		return nil
	}
	return broken("pod %s is evicted from %s, which still takes pods", s.pod.Key(), n.Name)
}

// checkPodProtection: protected pods are evicted only from a node that dies.
func checkPodProtection(w *world, s podEvicted) []string {
	n := w.api.nodes[s.pod.NodeName]
	if n == nil || !s.pod.Protected(time.Now().Add(w.plan.skew)) || isDying(w, n) {
		return nil
	}
	return broken("pod %s is evicted from %s", s.pod.Key(), n.Name)
}

// checkPodDeletion: a pod is deleted past its budget only from a node that dies.
func checkPodDeletion(w *world, s podDeleted) []string {
	n := w.api.nodes[s.pod.NodeName]
	if n == nil || isDying(w, n) || s.pod.Terminating() {
		return nil
	}
	return broken("pod %s on %s", s.pod.Key(), n.Name)
}

// checkExclusion: load balancers use a node as long as pods under a budget, or protected, have not been told to go, and
// the node does not end by force soon. What came to the node just now was not there for who decided.
func checkExclusion(w *world, s nodeExcluded) []string {
	n := s.node
	if isDying(w, n) || n.machine == nil || !n.Ready {
		return nil
	}
	c := w.api.byUID[n.machine.owner]
	if c == nil {
		return nil
	}
	by, err := time.Parse(time.RFC3339, c.Annotations[v1.AnnotationTerminationTimestamp])
	if err == nil && time.Until(by) < 5*time.Minute+w.plan.skew+seconds {
		return nil
	}
	for _, p := range w.api.podsOn(n.Name) {
		if p.Terminating() || p.Terminal() || !p.Ready || p.app == nil || p.app.daemon || time.Since(p.Started) < late {
			continue
		}
		if p.app.budget != nil || p.Protected(time.Now().Add(w.plan.skew)) {
			return broken("node %s leaves load balancers while pod %s has not been told to go", n.Name, p.Key())
		}
	}
	return nil
}

// isDying reports whether the node ends whatever anybody does: its instance is noticed, or its grace period is over.
func isDying(w *world, n *node) bool {
	if n.down || n.machine == nil || n.machine.Gone() || n.machine.noticed &&
		time.Until(n.machine.dies) < time.Hour+late || w.ec2.isUnsound(n.machine) {
		return true
	}
	c := w.api.byUID[n.machine.owner]
	if c == nil || c.TerminationGrace == nil || c.Deleting.IsZero() {
		return false
	}
	return time.Now().After(c.Deleting.Add(*c.TerminationGrace - 2*time.Minute))
}

func checkEvictedAfterReplacement(w *world, s podEvicted) []string {
	return checkGoesAfterReplacement(w, s.pod)
}

func checkDeletedAfterReplacement(w *world, s podDeleted) []string {
	return checkGoesAfterReplacement(w, s.pod)
}

// checkGoesAfterReplacement looks at a pod that is to go from an instance that EC2 takes back, and was there when its
// notice was handled. Within seconds of that, and if its grace period leaves the time, there is another place for it,
// or capacity is on its way.
func checkGoesAfterReplacement(w *world, p *pod) []string {
	n := w.api.nodes[p.NodeName]
	if n == nil || n.machine == nil || !n.machine.taken || p.Terminating() || p.app.daemon {
		return nil
	}
	c := w.api.byUID[n.machine.owner]
	by, err := time.Parse(time.RFC3339, c.Annotations[v1.AnnotationTerminationTimestamp])
	until := c.noticed.Add(replaceWithin - 2*w.plan.skew - time.Second)
	grace := time.Duration(p.GraceSec) * time.Second
	if err != nil || c.noticed.IsZero() || p.Started.After(c.noticed) || time.Now().After(until) ||
		until.Add(grace+30*time.Second).After(by) || capacityComes(w, c, n) {
		return nil
	}
	p.NodeName = "" // it does not stand in its own way, nor does the node in that of a spread once it is gone
	delete(w.api.nodes, n.Name)
	defer func() { p.NodeName, w.api.nodes[n.Name] = n.Name, n }()
	for _, other := range w.api.nodes {
		why := willRefuse(w, p, other)
		if why == "" || why == "spread" && someoneLeaves(w, n) || time.Since(other.bound) < late ||
			droppedLately(w, other) || takenBackLately(other) {
			return nil
		}
	}
	return broken("pod %s goes from %s, which EC2 takes back, %s after the notice was handled, and nothing is on its way",
		p.Key(), n.Name, time.Since(c.noticed))
}

// takenBackLately reports whether EC2 has begun to take the node's instance back since whoever acts now has read.
func takenBackLately(n *node) bool {
	return n.machine != nil && n.machine.taken && time.Until(n.machine.dies) > 2*time.Minute-seconds
}

// capacityComes reports whether another instance than that of the node is on its way, or was for who acts now.
func capacityComes(w *world, c *claim, n *node) bool {
	since := func(m *machine) bool { return !m.Launched.Before(c.noticed.Truncate(time.Second)) }
	for _, m := range w.ec2.livingInstances() {
		host := w.api.byUID[m.owner]
		lately := func(t time.Time) bool { return time.Since(t) < seconds } // since whoever acts now has read
		coming := host == nil || (host.Deleting.IsZero() || lately(host.noticed) || lately(host.expired)) &&
			(m.node == nil || !host.Is(v1.ConditionInitialized))
		if m != n.machine && (coming || since(m)) { // or taken back by now
			return true
		}
	}
	for _, m := range w.ec2.machines { // what has just ended
		if !m.stopped.IsZero() && time.Since(m.stopped) < seconds && since(m) {
			return true
		}
	}
	return false
}

// checkPodRemoval: nothing runs any more of a pod that is removed without asking its kubelet.
func checkPodRemoval(w *world, s podRemoved) []string {
	if n := w.api.nodes[s.pod.NodeName]; n != nil && !n.down {
		return broken("pod %s is removed while it runs on %s", s.pod.Key(), n.Name)
	}
	return nil
}

// checkGrace: a pod on a node that runs gets all of its grace period, unless the node ends before.
func checkGrace(w *world, s podDeleted) []string {
	p := s.pod
	n := w.api.nodes[p.NodeName]
	if n == nil || n.down || n.machine == nil || p.Terminating() || s.graceSec >= p.GraceSec {
		return nil
	}
	c := w.api.byUID[n.machine.owner]
	if c == nil {
		return nil
	}
	end, err := time.Parse(time.RFC3339, c.Annotations[v1.AnnotationTerminationTimestamp])
	if err != nil {
		// the instance is ending, or its claim has no deadline that could cut it short: deletions past budgets are
		// judged elsewhere
		return nil
	}
	if got := time.Duration(s.graceSec) * time.Second; !time.Now().Add(got + seconds + 2*w.plan.skew).Before(end) {
		return nil
	}
	return broken("pod %s gets %d s of %d on %s, which ends in %s", p.Key(), s.graceSec, p.GraceSec, n.Name,
		time.Until(end))
}
