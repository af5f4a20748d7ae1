package disruption

import (
	"slices"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/model/plan"
	"joiner/pkg/provisioning/staticcapacity"
)

// inStaticPool reports whether the node belongs to a pool with a fixed number of nodes.
func (n *stateNode) inStaticPool() bool { return n.pool != nil && n.pool.Static }

// isStaticCommand reports whether the command is about nodes of a static pool.
func (v *state) isStaticCommand(claims []string) bool {
	return slices.ContainsFunc(claims, func(name string) bool { return v.byClaim[name] != nil && v.byClaim[name].inStaticPool() })
}

// findStatic finds drifted nodes of static pools, the oldest drift first, each replaced by one of the template for itself. What pods they
// have does not matter: the new node is for the number, and their drain obeys what protects them. Pools with more nodes than they are to
// have lose some first, and a pool at its limit waits (StaticDrift).
func (v *state) findStatic() []Command {
	var set []*stateNode
	for _, n := range v.nodes {
		if n.inStaticPool() && v.mayDisrupt(n, v1.DisruptionDrifted) {
			set = append(set, n)
		}
	}
	slices.SortFunc(set, byDrift)
	var out []Command
	for _, n := range v.budget.Limit(set, v1.DisruptionDrifted) {
		if c, ok := v.replaceStatic(n); ok {
			v.takeBudgets(c)
			out = append(out, c)
		}
	}
	return out
}

// replaceStatic is the command that replaces one node of a static pool, if the pool has room for one more.
func (v *state) replaceStatic(n *stateNode) (Command, bool) {
	count := staticcapacity.CountNodes(v.s, n.pool.Name)
	refused := ""
	var l plan.Launch
	switch {
	case !n.pool.Ready || n.pool.Deleting:
		refused = "its NodePool cannot launch now"
	case count.Active+count.Pending > int(n.pool.Replicas):
		refused = "its NodePool has more nodes than it is to have"
	case v.renewing[n.pool.Name] >= staticcapacity.NodesAllowed(*n.pool, count):
		refused = "the limit of its NodePool has no room for its replacement"
	default:
		if v.purses[n.pool.Name] == nil {
			v.purses[n.pool.Name] = staticcapacity.PurseOf(v.s, *n.pool, v.types(*n.pool))
		}
		l, refused = v.purses[n.pool.Name].NextLaunch(1)
	}
	if refused != "" {
		n.drift = refusal{"drifted", "it has drifted, and " + refused}
		return Command{}, false
	}
	v.renewing[n.pool.Name]++
	return v.newCommand([]*stateNode{n}, v1.DisruptionDrifted, []plan.Launch{l}), true
}
