package disruption

import (
	"fmt"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/model/budgets"
)

// hibernatePools lets nodes of pools that sleep go, within their budgets for underused nodes and as far as their pods may go: they are drained, and
// what has no room elsewhere waits until the pool wakes.
func (ps *pass) hibernatePools(p *Plan) {
	var set []*stateNode
	for _, n := range ps.nodes {
		if n.pool != nil && !n.taken && n.barred.reason == "" && !ps.isReportOnly(n) && budgets.IsHibernating(n.pool.Disruption, ps.now()) {
			set = append(set, n)
		}
	}
	for _, n := range ps.budget.Limit(set, v1.DisruptionUnderutilized) {
		name := n.Claim.Name
		p.Finish = append(p.Finish, EndedCommand{Command: "sleep", Claims: []string{name}, Why: fmt.Sprintf("its NodePool %s sleeps", n.pool.Name)})
		ps.takeBudgets(Command{Claims: []string{name}, Moves: len(n.moving)})
	}
}
