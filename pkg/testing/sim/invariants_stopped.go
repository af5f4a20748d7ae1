package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
)

// startHolds is the time for which an instance that was asked to start counts as one that starts.
const startHolds = 5 * time.Minute

// claimOf is the stored claim of the instance, or nil.
func claimOf(w *world, m *machine) *claim {
	c := w.api.byUID[m.owner]
	if c == nil || w.api.claims[c.Name] != c {
		return nil
	}
	return c
}

// isIdle reports whether the instance is stopped, or about to be, and its claim says that this is so on purpose.
func isIdle(w *world, m *machine) bool {
	c := claimOf(w, m)
	return c != nil && (m.State == "stopping" || m.State == "stopped") && c.IsStopping()
}

// isKept reports whether the claim's node is kept for a buffer, so that no pod waits for it.
func isKept(c *claim) bool {
	asked := c.StartRequested()
	return c.Standby() && (asked.IsZero() || time.Since(asked) > startHolds-late)
}

// checkStartNoted: an instance is started for a claim that lives and says before that it is asked to start.
func checkStartNoted(w *world, s instanceRestarted) []string {
	c := claimOf(w, s.machine)
	switch {
	case c == nil:
		return broken("%s starts %s, which belongs to no claim", s.by, s.machine.ID)
	case !c.Deleting.IsZero() && time.Since(c.Deleting) > late:
		return broken("%s starts %s of claim %s, which is being deleted", s.by, s.machine.ID, c.Name)
	case c.StartRequested().IsZero():
		return broken("%s starts %s, and claim %s does not say so", s.by, s.machine.ID, c.Name)
	}
	return nil
}

// checkStopUnused: what is stopped has a claim that says so before, and runs nothing but daemons.
func checkStopUnused(w *world, s instanceStopped) []string {
	m := s.machine
	c := claimOf(w, m)
	switch {
	case c == nil || !c.IsStopping():
		return broken("%s stops %s, and no claim says so", s.by, m.ID)
	case c.Is(v1.ConditionStopped):
		return broken("%s stops %s of claim %s, which waited and was started", s.by, m.ID, c.Name)
	case m.node == nil:
		return nil
	}
	for _, p := range w.api.podsOn(m.node.Name) {
		if !p.app.daemon && p.Owner != cluster.OwnerNode && p.Active() && time.Since(p.Started) > late {
			return broken("%s stops %s while pod %s runs there", s.by, m.ID, p.Key())
		}
	}
	return nil
}

// checkRefusedLaunched: for pods that were to have a stopped node, and do not get it, the same invocation has capacity
// come, as far as EC2 sells any.
func checkRefusedLaunched(w *world, s invocationReturned) (bad []string) {
	inv := s.inv
	if !s.isSound() || inv.refused.IsZero() || inv.fn.Name != "provision" || w.unavailable() ||
		time.Since(inv.started) > inv.fn.Timeout/2 {
		return nil
	}
	comes := map[string]bool{}
	for _, c := range w.api.claims {
		for _, uid := range c.pods {
			comes[uid] = comes[uid] || c.Deleting.IsZero() && !isKept(c)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.api.pods)) {
		p := w.api.pods[key]
		if p.NodeName != "" || !p.Active() || comes[p.UID] || p.Created.After(inv.refused.Add(-late)) {
			continue
		}
		room := slices.ContainsFunc(slices.Collect(maps.Values(w.api.nodes)), func(n *node) bool {
			return w.scheduler.refusalReason(p, n) == "" || time.Since(n.Created) < late
		})
		if !room {
			bad = append(bad, fmt.Sprintf("%s was refused a start, and nothing comes for pod %s", inv, key))
		}
	}
	return bad
}

// unavailable reports whether EC2 sells so little that nodes may have nowhere to come from.
func (w *world) unavailable() bool {
	scarce := 0
	for _, gone := range w.ec2.scarce {
		if gone {
			scarce++
		}
	}
	return scarce > 2*len(w.waitingInstances())+2
}

// bufferProblems are buffers that lack stopped nodes, and stopped nodes that no buffer has use for or that cannot be
// used.
func bufferProblems(w *world) (bad []string) {
	daemons := resources.List{}
	for _, a := range w.workloads.apps {
		if a.daemon {
			daemons = daemons.Add(a.pattern.Need)
		}
	}
	wanted, room, kept := 0, 0, 0
	for _, b := range w.api.buffers {
		wanted += len(b.Pods)
	}
	for _, c := range selectInOrder(w.api.claims, func(c *claim) bool { return c.Standby() }) {
		m := w.ec2.instanceOf(c)
		kept++
		switch {
		case m == nil || m.State != "stopped" || !c.Is(v1.ConditionStopped):
			bad = append(bad, fmt.Sprintf("claim %s is kept, and is not stopped", c.Name))
		case driftReason(w, c) != "":
			bad = append(bad, fmt.Sprintf("claim %s is kept, and has drifted (%s)", c.Name, driftReason(w, c)))
		case w.api.nodeOf(c) != nil:
			bad = append(bad, fmt.Sprintf("claim %s is stopped, and has a node", c.Name))
		}
		used := daemons
		for wanted > 0 && used.Add(w.api.buffers[0].Pods[0].Need).FitsIn(c.Allocatable) {
			used, room = used.Add(w.api.buffers[0].Pods[0].Need), room+1
		}
	}
	if room < wanted || kept > wanted {
		bad = append(bad, fmt.Sprintf("%d stopped nodes have room for %d pods, the buffer has %d", kept, room, wanted))
	}
	return bad
}
