package disruption

import (
	"fmt"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/lists"
)

// hibernatePools ends nodes of pools that hibernate, within their budgets for underutilized nodes and as far as their
// pods may go. Pods without room elsewhere wait until the pool wakes.
func (ps *pass) hibernatePools(p *Plan) {
	set := lists.Where(ps.state.nodes, func(n *stateNode) bool {
		return n.pool != nil && !n.taken && n.blocked.reason == "" && !ps.state.isReportOnly(n) &&
			budgets.IsHibernating(n.pool.Disruption, ps.state.now())
	})
	for _, n := range ps.budget.limitSet(set, v1.DisruptionUnderutilized) {
		name := n.Claim.Name
		p.Finish = append(p.Finish, EndedCommand{Command: "sleep", Claims: []string{name},
			Why: fmt.Sprintf("its NodePool %s sleeps", n.pool.Name)})
		ps.takeBudgets(Command{Claims: []string{name}, Moves: len(n.moving)})
	}
}
