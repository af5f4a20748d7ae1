package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/objects"
)

// markOf is the disruption that a claim takes part in.
func markOf(c *claim) (m disruption.CommandMark, marked bool) {
	err := json.Unmarshal([]byte(c.Annotations[disruption.AnnotationMark]), &m)
	return m, err == nil
}

func goesForDrift(c *claim) bool {
	m, marked := markOf(c)
	return marked && m.Reason == v1.DisruptionDrifted
}

// checkReplacementsReady: all that was made in the stead of a claim that disrupt deletes is ready.
func checkReplacementsReady(w *world, s claimDeleted) (bad []string) {
	if s.by.fn.Name != "disrupt" || leftByChoice(w, s) == nil {
		return nil
	}
	m, marked := markOf(s.claim)
	for _, name := range slices.Sorted(maps.Keys(w.api.claims)) {
		r := w.api.claims[name]
		if marked && r.Annotations[disruption.AnnotationReplaces] == m.ID && r.Deleting.IsZero() &&
			!w.api.inService(r) &&
			!onlyNominationLeft(w, r) {
			bad = append(bad, fmt.Sprintf("claim %s is marked for deletion while %s, which replaces it, is not ready",
				s.claim.Name, name))
		}
	}
	return bad
}

// onlyNominationLeft reports whether only its hold keeps the claim's node from being initialized.
func onlyNominationLeft(w *world, c *claim) bool {
	n := w.api.nodeOf(c)
	return n != nil && cluster.StateNode{Node: &n.Node, Claim: &c.Claim}.ReadyForNominated()
}

// leftByChoice is the node of a claim that provision or disrupt marks for deletion without need; nil of any other. The
// number of nodes of a static pool matters, not where their pods go.
func leftByChoice(w *world, s claimDeleted) *node {
	n := w.api.nodeOf(s.claim)
	left := s.by.fn.Name == "disrupt" ||
		s.by.fn.Name == "provision" && interruption.LeaveOf(s.claim.Claim).Cause != ""
	if pool, _ := w.api.poolOf(s.claim.Pool); n == nil || isDying(w, n) || !left || pool.Static {
		return nil
	}
	return n
}

// checkNodeProtection: nobody protects a node that goes by choice.
func checkNodeProtection(w *world, s claimDeleted) []string {
	n := leftByChoice(w, s)
	if n == nil || n.Annotations[v1.AnnotationDoNotDisrupt] != "true" || time.Since(n.guarded) <= late {
		return nil
	}
	return broken("%s takes node %s, which has been protected for %s", s.by, n.Name, time.Since(n.guarded))
}

// checkRoomElsewhere: there is a place for the pods of a node that goes by choice, on nodes that are ready. Pods that
// were bound just now may have taken a place since provision looked.
func checkRoomElsewhere(w *world, s claimDeleted) (bad []string) {
	n := leftByChoice(w, s)
	if n == nil {
		return nil
	}
	waived := goesForDrift(s.claim) && s.claim.TerminationGrace != nil // protected pods get no other place
	for _, p := range w.api.podsOn(n.Name) {
		if waived && p.Protected(time.Now().Add(-w.plan.skew-seconds)) || p.Terminating() || p.app.daemon ||
			p.Owner == cluster.OwnerNode || time.Since(p.Started) < seconds ||
			len(p.Spread) > 0 && isScattering(w, p.app) {
			continue
		}
		if free, why := hasRoomWithout(w, p, n); !free {
			bad = append(bad, fmt.Sprintf("claim %s is marked for deletion while pod %s has no other place%s", s.claim.Name,
				p.Key(), why))
		}
	}
	return bad
}

// hasRoomWithout reports whether there is another place for the pod than its node, or why not.
func hasRoomWithout(w *world, p *pod, n *node) (free bool, why string) {
	p.NodeName = "" // it does not stand in its own way, nor does the node in that of a spread once it is gone
	delete(w.api.nodes, n.Name)
	back := moveKin(w, p, n)
	for _, other := range w.api.nodes {
		// The scheduler counts nodes that are on their way out for spreads, until they are gone.
		refusal := willRefuse(w, p, other)
		free = free || refusal == "" || refusal == "spread" && someoneLeaves(w, n) || time.Since(other.bound) < late ||
			noticedLately(w, other)
	}
	why = whyNot(w, p)
	back()
	p.NodeName, w.api.nodes[n.Name] = n.Name, n
	return free, why
}

// noticedLately reports whether a notice had the node's claim marked for deletion since whoever acts now has read.
func noticedLately(w *world, n *node) bool {
	if n.machine == nil {
		return false
	}
	c := w.api.byUID[n.machine.owner]
	return c != nil && !c.noticed.IsZero() && time.Since(c.noticed) < seconds
}

// droppedLately reports whether somebody deleted the node's claim since whoever acts now has read.
func droppedLately(w *world, n *node) bool {
	if n.machine == nil {
		return false
	}
	c := w.api.byUID[n.machine.owner]
	return c != nil && !c.dropped.IsZero() && time.Since(c.dropped) < seconds
}

// isScattering reports whether pods of the app have no node yet: where they come to decides where its others may be.
func isScattering(w *world, a *app) bool {
	for _, p := range w.api.pods {
		if p.app.isKinOf(a) && p.NodeName == "" {
			return true
		}
	}
	return false
}

// someoneLeaves reports whether another node than that one is on its way out.
func someoneLeaves(w *world, but *node) bool {
	for _, n := range w.api.nodes {
		if n != but && (!n.Deleting.IsZero() || slices.Contains(n.Taints, objects.DisruptedTaint())) {
			return true
		}
	}
	return false
}

// checkBudgetOfDeletion: claims are marked for deletion by choice within the budget of their pool. Disrupt takes of its
// budget when it begins.
func checkBudgetOfDeletion(w *world, s claimDeleted) []string {
	if s.by.fn.Name == "disrupt" || leftByChoice(w, s) == nil {
		return nil
	}
	return checkBudget(w, s.claim)
}

// checkBudgetOfTaint: nodes are tainted by choice within the budget of their pool.
func checkBudgetOfTaint(w *world, s nodeTainted) []string {
	if !s.isChosen(w) {
		return nil
	}
	return checkBudget(w, w.api.byUID[s.node.machine.owner])
}

// isChosen reports whether the node would stay if nobody chose to take it out of service.
func (s nodeTainted) isChosen(w *world) bool {
	return s.node.machine != nil && s.node.Deleting.IsZero() && !isDying(w, s.node)
}

// checkBudget looks at a claim whose node is about to be taken out of service by choice: the pool's budget holds. A
// notice waits for no budget and neither do a user and expiry, and whoever decides does not know of what came since it
// read. For a node without pods a drain of an hour may have stopped to count.
func checkBudget(w *world, c *claim) []string {
	pool, _ := w.api.poolOf(c.Pool)
	own := w.api.nodeOf(c)
	empty := own != nil && !slices.ContainsFunc(w.api.podsOn(own.Name), func(p *pod) bool { return p.Reschedulable() })
	away := 1
	for _, other := range w.api.claims {
		host := w.api.nodeOf(other)
		if time.Since(other.noticed) < seconds || time.Since(other.dropped) < seconds ||
			time.Since(other.expired) < seconds ||
			empty && !other.Deleting.IsZero() && time.Since(other.Deleting) >= time.Hour {
			continue
		}
		if other != c && other.Pool == c.Pool && host != nil &&
			(!other.Deleting.IsZero() || slices.Contains(host.Taints, objects.DisruptedTaint())) &&
			// nodes that budgets count
			other.Is(v1.ConditionInitialized) && !other.Is(v1.ConditionInstanceTerminating) {
			away++
		}
	}
	justChanged := time.Since(w.plan.budgetSince) < late // and whoever acts now has read the budget of before
	most := w.plan.budget
	if most == 0 || len(pool.Disruption.Budgets) == 0 || away <= most || justChanged {
		return nil
	}
	return broken("with %s %d nodes of pool %s go, %d may", c.Name, away, pool.Name, most)
}

// checkVolumesStay: for each pod, whose volume is in a zone, of a node whose claim goes by choice something else is
// there, or comes, that the pod may run on. Pods that came lately may have taken the room that was meant for it, and
// count for nothing. The taint does not tell: the replacements of a node are made after it.
func checkVolumesStay(w *world, s claimDeleted) (bad []string) {
	n, c := leftByChoice(w, s), s.claim
	if n == nil {
		return nil
	}
	waived := goesForDrift(c) && c.TerminationGrace != nil
	for _, p := range w.api.podsOn(n.Name) {
		zone := w.volumes.zoneOf(p.volumeClaims, late)
		if zone == "" || p.Terminating() || time.Since(p.Started) < late || waived &&
			p.Protected(time.Now().Add(-w.plan.skew-seconds)) {
			continue
		}
		if !offeringsRoom(w, p, n, zone) {
			bad = append(bad, fmt.Sprintf(
				"node %s is to go, and for pod %s, whose volume is in %s, nothing else is there or comes", n.Name,
				p.Key(), zone))
		}
	}
	return bad
}

// offeringsRoom reports whether a node in the zone beside that one is large enough for the pod and the pods that have
// been there for some time, or a claim may come there.
func offeringsRoom(w *world, p *pod, but *node, zone string) bool {
	for _, other := range w.api.nodes {
		if other == but || other.Labels[labelZone] != zone || !podSelects(p, other.Labels) {
			continue
		}
		used := p.Need
		for _, there := range w.api.podsOn(other.Name) {
			if !there.Terminating() && time.Since(there.Started) > late {
				used = used.Add(there.Need)
			}
		}
		if used.FitsIn(other.Allocatable) || !other.isTainted() && noticedLately(w, other) {
			return true
		}
	}
	for _, c := range w.api.claims {
		if c.Deleting.IsZero() && w.api.nodeOf(c) == nil && c.Requirements.Has(labelZone, zone) {
			return true
		}
	}
	return false
}

// checkUndone: at rest no disruption is taken back because a pod finds no room where its volume is, unless other pods
// came to the room that there was.
func checkUndone(w *world, s eventRecorded) (bad []string) {
	e := s.event
	c := w.api.claims[e.Name]
	if e.Reason != "DisruptionFailed" || e.Kind != "NodeClaim" || c == nil || w.calmed.IsZero() ||
		time.Since(w.calmed) < echo {
		return nil
	}
	mark, _ := markOf(c)
	for _, key := range slices.Sorted(maps.Keys(w.api.pods)) {
		zone := w.volumes.zoneOf(w.api.pods[key].volumeClaims, 0)
		if zone != "" && strings.Contains(e.Message, "pod "+key+" has no room") && !filledSince(w, zone, mark) {
			bad = append(bad, fmt.Sprintf("%s %s: %s", e.Kind, e.Name, e.Message))
		}
	}
	return bad
}

// filledSince reports whether a pod has come, since the disruption began, to a node of the zone on which it counted:
// those that it brings, or any if it brings none.
func filledSince(w *world, zone string, mark disruption.CommandMark) bool {
	for _, p := range w.api.pods {
		n := w.api.nodes[p.NodeName]
		if n == nil || n.Labels[labelZone] != zone || p.app.daemon ||
			p.Started.Before(mark.Since.Truncate(time.Second)) {
			continue
		}
		c := w.api.byUID[n.owner]
		if mark.Replacements == 0 || c != nil && c.Annotations[disruption.AnnotationReplaces] == mark.ID {
			return true
		}
	}
	return false
}
