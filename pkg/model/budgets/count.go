package budgets

import (
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// blockedAfter is the age of a drain from which what holds it up is no matter of a moment.
const blockedAfter = time.Hour

// PoolCount holds the number of nodes of a pool that count for its budgets, and how many of those are out of service.
type PoolCount struct {
	Total   int // managed and initialized nodes whose instance is not ending, without stopped capacity
	Gone    int // of these, not ready or marked for deletion, whatever the cause
	Blocked int // of these, see BlockedDrains
}

// GoneFor returns the number of nodes that the budgets for the reason count as out of service. A drain that its pods
// hold up counts for no empty node: it may last for ever, and empty nodes are of use to nobody meanwhile.
func (c PoolCount) GoneFor(reason v1.DisruptionReason) int {
	if reason == v1.DisruptionEmpty {
		return c.Gone - c.Blocked
	}
	return c.Gone
}

// CountNodes counts the nodes of every pool.
func CountNodes(s cluster.Snapshot) map[string]PoolCount {
	out := map[string]PoolCount{}
	counted := countedNodes(s)
	for _, node := range counted {
		c := out[node.Pool()]
		c.Total++
		if !node.Node.Ready || node.MarkedForDeletion() {
			c.Gone++
		}
		out[node.Pool()] = c
	}
	for pool, nodes := range blockedDrains(s, counted) {
		c := out[pool]
		c.Blocked = len(nodes)
		out[pool] = c
	}
	return out
}

// BlockedDrains names the nodes of every pool whose NodeClaims were deleted an hour ago or longer and whose pods still
// may not be evicted.
func BlockedDrains(s cluster.Snapshot) map[string][]string { return blockedDrains(s, countedNodes(s)) }

func blockedDrains(s cluster.Snapshot, counted []cluster.StateNode) map[string][]string {
	out := map[string][]string{}
	var on map[string][]*cluster.Pod
	var obstacles cluster.Obstacles
	for _, node := range counted {
		if node.Claim.Deleting.IsZero() || s.Now.Before(node.Claim.Deleting.Add(blockedAfter)) {
			continue
		}
		if on == nil {
			on, obstacles = s.PodsByNode(), s.Obstacles()
		}
		if word, _ := obstacles.Of(on[node.Node.Name]); word != "" {
			out[node.Pool()] = append(out[node.Pool()], node.Node.Name)
		}
	}
	return out
}

// countedNodes are the nodes that count for the budgets of their pools.
func countedNodes(s cluster.Snapshot) []cluster.StateNode {
	return slices.DeleteFunc(s.StateNodes(), func(node cluster.StateNode) bool {
		return node.Claim == nil || node.Standby() || node.Pool() == "" || !node.Initialized() ||
			node.Claim.Is(v1.ConditionInstanceTerminating)
	})
}

// RemainingDisruptions returns how many more nodes of the pool may be disrupted now for the reason; the error is that
// of AllowedDisruptions.
func RemainingDisruptions(s cluster.Snapshot, p cluster.Pool, reason v1.DisruptionReason) (int, error) {
	c := CountNodes(s)[p.Name]
	n, err := AllowedDisruptions(p.Disruption, reason, c.Total, s.Now)
	return max(n-c.GoneFor(reason), 0), err
}
