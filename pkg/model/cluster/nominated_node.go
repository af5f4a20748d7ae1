package cluster

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	api "joiner.sh/pkg/api/v1"
)

// Disruption is the id of the disruption by which the claim goes, empty for none.
func (c Claim) Disruption() string {
	var mark struct{ ID string }
	if json.Unmarshal([]byte(c.Annotations[api.AnnotationDisruptionCommand]), &mark) != nil {
		return ""
	}
	return mark.ID
}

// NominatedPods are the keys of the pods planned for the claim's node.
func (c Claim) NominatedPods() []string {
	if c.Annotations[api.AnnotationNominatedPods] == "" {
		return nil
	}
	return strings.Split(c.Annotations[api.AnnotationNominatedPods], ",")
}

// AwaitsNominated reports whether the host is kept for pods that are to be evicted elsewhere: it has the hold it was
// born with, or has no node yet.
func (node StateNode) AwaitsNominated() bool {
	return node.Claim != nil && node.Claim.Annotations[api.AnnotationNominatedOwners] != "" &&
		!node.MarkedForDeletion() &&
		(node.Node == nil || slices.ContainsFunc(node.Node.Taints, Taint.IsNomination))
}

// ReadyForNominated reports whether the held node lacks nothing but pods: only its hold keeps it from being
// initialized.
func (node StateNode) ReadyForNominated() bool {
	if !node.AwaitsNominated() || !node.Registered() || !node.Node.Ready {
		return false
	}
	for _, name := range node.Claim.Requests.Names() {
		if node.Node.Allocatable.Get(name) == 0 {
			return false
		}
	}
	return !slices.ContainsFunc(node.Node.Taints, func(t Taint) bool {
		started := !slices.ContainsFunc(node.Claim.StartupTaints,
			func(s Taint) bool { return s.Key == t.Key && s.Effect == t.Effect })
		return t.Ephemeral() || t.IsNomination() && t.Value == api.HoldAtBoot || !t.IsNomination() && !started
	})
}

// IsAwaitingPods reports whether the node has a claim, and the scheduler has not had the time to put the pods planned
// for it onto its node. Those that it did not put there later are packed by what is true now: a rule may have come to
// keep them away. A held node is not initialized while it waits for them.
func (node StateNode) IsAwaitingPods(now time.Time) bool {
	if node.Claim == nil || node.MarkedForDeletion() || node.LostNode(now) {
		return false
	}
	if node.AwaitsNominated() {
		return true
	}
	if n := node.Node; n != nil && n.Ready && !n.ReadySince.IsZero() && now.Sub(n.ReadySince) >= RefusedAfter &&
		!node.AwaitsAgents() {
		return false
	}
	k := node.Claim.Condition(api.ConditionInitialized)
	return !node.Initialized() || k.Status == "True" && now.Before(k.Since.Add(bindsWithin))
}

// bindsWithin is the time that the scheduler may take for the pods of a node that has become ready for them.
const bindsWithin = 10 * time.Second

// RefusedAfter is the time after a node became ready by which the scheduler has decided about pods planned for it.
const RefusedAfter = 15 * time.Second
