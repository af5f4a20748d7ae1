package budgets

import (
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// PoolCount is how many nodes of a pool count for its budgets, and how many of those are out of service.
type PoolCount struct {
	Total int // managed and initialized nodes whose instance is not ending, without stopped capacity
	Gone  int // of these, not ready or marked for deletion, whatever the cause
}

// CountNodes counts the nodes of every pool.
func CountNodes(s cluster.Snapshot) map[string]PoolCount {
	out := map[string]PoolCount{}
	for _, h := range s.StateNodes() {
		if h.Claim == nil || h.Standby() || h.Pool() == "" || !h.Initialized() ||
			h.Claim.Is(v1.ConditionInstanceTerminating) {
			continue
		}
		c := out[h.Pool()]
		c.Total++
		if !h.Node.Ready || h.MarkedForDeletion() {
			c.Gone++
		}
		out[h.Pool()] = c
	}
	return out
}

// RemainingDisruptions is how many more nodes of the pool may be disrupted now for the reason; the error is that of
// Allowed.
func RemainingDisruptions(s cluster.Snapshot, p cluster.Pool, reason v1.DisruptionReason) (int, error) {
	c := CountNodes(s)[p.Name]
	n, err := AllowedDisruptions(p.Disruption, reason, c.Total, s.Now)
	return max(n-c.Gone, 0), err
}
