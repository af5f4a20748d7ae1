package disruption

import (
	"maps"
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// LiveCheck says of commands that are about to begin whether they still hold. It compares a snapshot read just now with
// what the deciding pass remembered, and looks at neither prices nor room.
type LiveCheck struct {
	index     nodeIndex
	obstacles cluster.Obstacles
	budget    *Budget
	decided   Memory
}

// NewLiveCheck returns the check by a snapshot read just now of what was decided with the memory.
func NewLiveCheck(s cluster.Snapshot, decided Memory) *LiveCheck {
	return &LiveCheck{index: newNodeIndex(s), obstacles: s.Obstacles(), budget: newBudget(s), decided: decided}
}

// ChangedSince returns what has changed on the nodes of a command since it was decided, or nothing. Then the command
// has its share of the budgets.
func (v *LiveCheck) ChangedSince(c Command) string {
	for _, name := range c.Claims {
		if why := v.nodeChange(c.Reason, name); why != "" {
			return name + why
		}
	}
	taken := map[string]int{}
	for _, name := range c.Claims {
		taken[v.index.byClaim[name].Pool()]++
	}
	pools := slices.Sorted(maps.Keys(taken))
	for _, pool := range pools {
		if _, known := v.budget.left[pool]; known && taken[pool] > v.budget.Left(pool, c.Reason) {
			return "other nodes of NodePool " + pool + " go since, and its budgets let no more go now"
		}
	}
	for _, pool := range pools {
		for range taken[pool] {
			v.budget.Take(pool)
		}
	}
	return ""
}

// nodeChange returns what has changed on the claim's node, to be read after its name, or nothing.
func (v *LiveCheck) nodeChange(reason v1.DisruptionReason, name string) string {
	n := v.index.byClaim[name]
	switch {
	case n == nil || n.Node == nil:
		return " or its node is gone"
	case n.MarkedForDeletion():
		return ": it is leaving already"
	case isProtected(n):
		return ": its node carries " + v1.AnnotationDoNotDisrupt
	case sumPodEvents(n.pods) != v.decided.Quiet[name].Sum:
		return ": its pods are others by now"
	case reason == v1.DisruptionDrifted && n.Claim.TerminationGrace != nil:
		return ""
	}
	if _, why := v.obstacles.Of(n.pods); why != "" {
		return ": " + why
	}
	return ""
}
