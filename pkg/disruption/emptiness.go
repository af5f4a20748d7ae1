package disruption

import (
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/lists"
)

// consolidatableAt returns until when consolidation leaves the node alone.
func (n *stateNode) consolidatableAt() (until time.Time, ok bool) {
	t, err := time.Parse(time.RFC3339, n.Claim.Annotations[v1.AnnotationDoNotConsolidateBefore])
	return t, err == nil
}

// findEmpty returns the command about nodes on which nothing needs room elsewhere.
func (ps *pass) findEmpty(*Memory) (Command, bool) {
	set := lists.Where(ps.state.nodes,
		func(n *stateNode) bool { return ps.candidates.mayDisrupt(n, v1.DisruptionEmpty) })
	return ps.deleteCommand(ps.budget.limitSet(set, v1.DisruptionEmpty), v1.DisruptionEmpty)
}

// deleteCommand returns the command by which the nodes go without replacement.
func (ps *pass) deleteCommand(set []*stateNode, reason v1.DisruptionReason) (Command, bool) {
	if len(set) == 0 {
		return Command{}, false
	}
	return ps.state.newCommand(set, reason, nil), true
}
