package budget

import (
	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
)

// Count is how many nodes of a pool count for its budgets, and how many of those are out of service.
type Count struct {
	Total int // managed and initialized nodes whose instance is not ending
	Gone  int // of these, not ready or condemned, whatever the cause
}

// Counts counts the nodes of every pool (spec core.md §1.6, §9.4).
func Counts(s cluster.Snapshot) map[string]Count {
	out := map[string]Count{}
	for _, h := range s.Hosts() {
		if h.Claim == nil || h.Pool() == "" || !h.Initialized() || h.Claim.Is(v1.ConditionInstanceTerminating) {
			continue
		}
		c := out[h.Pool()]
		c.Total++
		if !h.Node.Ready || h.Condemned() {
			c.Gone++
		}
		out[h.Pool()] = c
	}
	return out
}

// Left is how many more nodes of the pool may be disrupted now for the reason; the error is that of Allowed.
func Left(s cluster.Snapshot, p cluster.Pool, reason v1.DisruptionReason) (int, error) {
	c := Counts(s)[p.Name]
	n, err := Allowed(p.Disruption, reason, c.Total, s.Now)
	return max(n-c.Gone, 0), err
}
