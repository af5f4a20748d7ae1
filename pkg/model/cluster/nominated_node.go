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
func (h StateNode) AwaitsNominated() bool {
	return h.Claim != nil && h.Claim.Annotations[api.AnnotationNominatedOwners] != "" && !h.MarkedForDeletion() &&
		(h.Node == nil || slices.ContainsFunc(h.Node.Taints, Taint.IsNomination))
}

// ReadyForNominated reports whether the held node lacks nothing but pods: only its hold keeps it from being
// initialized.
func (h StateNode) ReadyForNominated() bool {
	if !h.AwaitsNominated() || !h.Registered() || !h.Node.Ready {
		return false
	}
	for _, name := range h.Claim.Requests.Names() {
		if h.Node.Allocatable.Get(name) == 0 {
			return false
		}
	}
	return !slices.ContainsFunc(h.Node.Taints, func(t Taint) bool {
		started := !slices.ContainsFunc(h.Claim.StartupTaints,
			func(s Taint) bool { return s.Key == t.Key && s.Effect == t.Effect })
		return t.Ephemeral() || t.IsNomination() && t.Value == api.HoldAtBoot || !t.IsNomination() && !started
	})
}

// IsAwaitingPods reports whether the node has a claim, and the scheduler has not had the time to put the pods planned
// for it onto its node. Those that it did not put there later are packed by what is true now: a rule may have come to
// keep them away. A held node is not initialized while it waits for them.
func (h StateNode) IsAwaitingPods(now time.Time) bool {
	if h.Claim == nil || h.MarkedForDeletion() || h.LostNode(now) {
		return false
	}
	if h.AwaitsNominated() {
		return true
	}
	if n := h.Node; n != nil && n.Ready && !n.ReadySince.IsZero() && now.Sub(n.ReadySince) >= RefusedAfter &&
		!h.AwaitsAgents() {
		return false
	}
	k := h.Claim.Condition(api.ConditionInitialized)
	return !h.Initialized() || k.Status == "True" && now.Before(k.Since.Add(bindsWithin))
}

// bindsWithin is the time that the scheduler may take for the pods of a node that has become ready for them.
const bindsWithin = 10 * time.Second

// RefusedAfter is the time after a node became ready by which the scheduler has decided about pods planned for it.
const RefusedAfter = 15 * time.Second
