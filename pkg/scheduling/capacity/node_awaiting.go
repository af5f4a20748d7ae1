package capacity

import (
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// IsAwaitingPods reports whether the host has a claim, and the scheduler has not had the time to put the pods planned
// for it onto its node. Those that it did not put there later are packed by what is true now: a rule may have come to
// keep them away. A held node is not initialized while it waits for them.
func IsAwaitingPods(h cluster.StateNode, now time.Time) bool {
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

// bindsWithin is how long the scheduler may take for the pods of a node that has become ready for them.
const bindsWithin = 10 * time.Second

// RefusedAfter is how long after a node became ready the scheduler has had its say about the pods planned for it.
const RefusedAfter = 15 * time.Second
