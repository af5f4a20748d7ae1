package disrupt

import (
	"slices"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/plan"
	"joiner/pkg/static"
)

// static reports whether the node belongs to a pool with a fixed number of nodes.
func (n *node) static() bool { return n.pool != nil && n.pool.Static }

// fixed reports whether the command is about nodes of a static pool.
func (v *view) fixed(claims []string) bool {
	return slices.ContainsFunc(claims, func(name string) bool { return v.byClaim[name] != nil && v.byClaim[name].static() })
}

// findStatic finds drifted nodes of static pools, the oldest drift first, each replaced by one of the template for itself. What pods they
// have does not matter: the new node is for the number, and their drain obeys what protects them. Pools with more nodes than they are to
// have lose some first, and a pool at its limit waits (spec core.md §6.4, StaticDrift).
func (v *view) findStatic() []Command {
	var set []*node
	for _, n := range v.nodes {
		if n.static() && v.open(n, v1.DisruptionDrifted) {
			set = append(set, n)
		}
	}
	slices.SortFunc(set, byDrift)
	var out []Command
	for _, n := range v.within(set, v1.DisruptionDrifted) {
		if c, ok := v.renewed(n); ok {
			v.claim(c)
			out = append(out, c)
		}
	}
	return out
}

// renewed is the command that replaces one node of a static pool, if the pool has room for one more.
func (v *view) renewed(n *node) (Command, bool) {
	count := static.Counts(v.s, n.pool.Name)
	refused := ""
	var l plan.Launch
	switch {
	case !n.pool.Ready || n.pool.Deleting:
		refused = "its NodePool cannot launch now"
	case count.Active+count.Pending > int(n.pool.Replicas):
		refused = "its NodePool has more nodes than it is to have"
	case v.renewing[n.pool.Name] >= static.Room(*n.pool, count):
		refused = "the limit of its NodePool has no room for its replacement"
	default:
		if v.purses[n.pool.Name] == nil {
			v.purses[n.pool.Name] = static.PurseOf(v.s, *n.pool, v.types(*n.pool))
		}
		l, refused = v.purses[n.pool.Name].Launch(1)
	}
	if refused != "" {
		n.drift = refuse{"drifted", "it has drifted, and " + refused}
		return Command{}, false
	}
	v.renewing[n.pool.Name]++
	return v.command([]*node{n}, v1.DisruptionDrifted, []plan.Launch{l}), true
}
