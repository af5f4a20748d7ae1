package disruption

import (
	"time"

	v1 "joiner.sh/pkg/api/v1"
)

// minPodEventInterval is the least time between pod events that are written onto a NodeClaim: Karpenter's rule for
// status.lastPodEventTime.
const minPodEventInterval = 10 * time.Second

// PodStability says since when the pods of a node are the same.
type PodStability struct {
	Sum   uint32    `json:"sum"`   // of the pods
	Since time.Time `json:"since"` // when they changed last, zero while nobody knows of a change
}

// StabilityNote tells of the pods on a NodeClaim's node when one last came, ended or began to end, zero while nobody
// knows. It tells whether the consolidateAfter of its pool is over since then.
type StabilityNote struct {
	Claim          string    // name of the NodeClaim
	LastPodEvent   time.Time // in whole seconds
	Consolidatable bool      // whether the condition is to be True
}

// podStabilityOf returns since when the pods of the node are the same: what the pass before saw, else what the claim
// says.
func podStabilityOf(n *stateNode, m Memory, now time.Time) PodStability {
	q := PodStability{Sum: sumPodEvents(n.pods), Since: n.Claim.LastPodEvent}
	switch old, known := m.Quiet[n.Claim.Name]; {
	case known && old.Sum != q.Sum:
		q.Since = now
	case known && !old.Since.IsZero():
		q.Since = old.Since
	}
	if q.Since.After(now) {
		q.Since = now // the clock was set back: nobody waits longer than consolidateAfter from now on
	}
	return q
}

// quietPeriods says since when the pods of nodes are the same.
type quietPeriods struct {
	at    time.Time // of the pass
	quiet map[string]PodStability
}

// quietSince returns from when consolidateAfter of the node counts: the last change of its pods, or the time it came
// into service.
func (q quietPeriods) quietSince(n *stateNode) time.Time {
	if since := q.quiet[n.Claim.Name].Since; !since.IsZero() {
		return since
	}
	if since := n.Claim.Condition(v1.ConditionInitialized).Since; since.Before(q.at) {
		return since
	}
	return q.at // the clock was set back
}

// changedRecently reports whether the pods of the node have changed within the consolidateAfter of its pool.
func (q quietPeriods) changedRecently(n *stateNode) bool {
	return q.at.Before(q.quietSince(n).Add(n.pool.Disruption.After))
}

// takesNoPods reports whether consolidation puts nothing more on the node because its pods changed recently. Where its
// pool makes no new nodes it does.
func (q quietPeriods) takesNoPods(n *stateNode) bool {
	return n.pool != nil && n.pool.Ready && !n.pool.Static && !n.pool.Disruption.Never && q.changedRecently(n)
}

// changedStability returns the NodeClaims of these nodes that say something else by now, in their order. Nodes of
// static pools, and of pools that consolidate never, are never consolidatable.
func (q quietPeriods) changedStability(nodes []*stateNode) []StabilityNote {
	var out []StabilityNote
	for _, n := range nodes {
		if n.Deleting() || !n.Claim.Is(v1.ConditionInitialized) {
			continue
		}
		since, have := q.quiet[n.Claim.Name].Since, n.Claim.LastPodEvent
		s := StabilityNote{Claim: n.Claim.Name, LastPodEvent: have}
		s.Consolidatable = n.pool != nil && !n.pool.Static && !n.pool.Disruption.Never && !q.changedRecently(n)
		if !since.IsZero() && !since.Before(have.Add(minPodEventInterval)) {
			s.LastPodEvent = since.UTC().Truncate(time.Second)
		}
		if !s.LastPodEvent.Equal(have) || s.Consolidatable != n.Claim.Is(v1.ConditionConsolidatable) {
			out = append(out, s)
		}
	}
	return out
}
