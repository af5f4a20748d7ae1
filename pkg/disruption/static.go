package disruption

import (
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/provisioning/staticcapacity"
	"joiner.sh/pkg/rollout"
)

// inStaticPool reports whether the node belongs to a pool with a fixed number of nodes.
func (n *stateNode) inStaticPool() bool { return n.pool != nil && n.pool.Static }

// findStatic returns commands about drifted nodes of static pools, the oldest drift first, each replaced by one of the
// template for itself. Where their pods go does not matter: the new node keeps the number, and the drain obeys what
// protects them. Pools with more nodes than they are to have lose some first, and a pool at its limit waits.
func (ps *pass) findStatic() []Command {
	set := lists.Where(ps.state.nodes,
		func(n *stateNode) bool { return n.inStaticPool() && ps.candidates.mayDisrupt(n, v1.DisruptionDrifted) })
	slices.SortFunc(set, byDriftTime)
	var out []Command
	for _, n := range ps.budget.limitSet(set, v1.DisruptionDrifted) {
		if c, ok := ps.replaceStatic(n); ok {
			ps.takeBudgets(c)
			out = append(out, c)
		}
	}
	return out
}

// replaceStatic returns the command that replaces one node of a static pool, if the pool has room for one more.
func (ps *pass) replaceStatic(n *stateNode) (Command, bool) {
	count := staticcapacity.CountNodes(ps.state.snapshot, n.pool.Name)
	refused := ""
	var l plan.Launch
	switch {
	case !n.pool.Ready || n.pool.Deleting:
		refused = "its NodePool cannot launch now"
	case count.Active+count.Pending > int(n.pool.Replicas):
		refused = "its NodePool has more nodes than it is to have"
	case ps.replaced[n.pool.Name] >= staticcapacity.NodesAllowed(*n.pool, count):
		refused = "the limit of its NodePool has no room for its replacement"
	default:
		if ps.headroom[n.pool.Name] == nil {
			ps.headroom[n.pool.Name] = staticcapacity.PurseOf(ps.state.snapshot, *n.pool, ps.state.types(*n.pool))
		}
		l, refused = ps.headroom[n.pool.Name].NextLaunch(1)
	}
	if refused != "" {
		n.refuseReplacement(refusal{IneligibleDrifted, "it has drifted, and " + refused})
		return Command{}, false
	}
	if n.awaitsTrial() {
		if ps.budget.slotsLeft(*n.pool.Rollout) <= 0 {
			n.refuseReplacement(ps.candidates.rolloutRefusal(n))
			return Command{}, false
		}
		l = rollout.WithRevision(l, n.pool.Rollout.Try)
	}
	ps.replaced[n.pool.Name]++
	return ps.state.newCommand([]*stateNode{n}, v1.DisruptionDrifted, []plan.Launch{l}), true
}
