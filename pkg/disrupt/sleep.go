package disrupt

import (
	"fmt"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/budget"
)

// sleep lets nodes of pools that sleep go, within their budgets for underused nodes and as far as their pods may go: they are drained, and
// what has no room elsewhere waits until the pool wakes.
func (v *view) sleep(p *Plan) {
	var set []*node
	for _, n := range v.nodes {
		if n.pool != nil && !n.taken && n.barred.word == "" && !v.reports(n) && budget.Asleep(n.pool.Disruption, v.now()) {
			set = append(set, n)
		}
	}
	for _, n := range v.within(set, v1.DisruptionUnderutilized) {
		name := n.Claim.Name
		p.Finish = append(p.Finish, Ended{Command: "sleep", Claims: []string{name}, Why: fmt.Sprintf("its NodePool %s sleeps", n.pool.Name)})
		v.claim(Command{Claims: []string{name}, Moves: len(n.moving)})
	}
}
