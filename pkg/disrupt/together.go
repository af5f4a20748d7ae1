package disrupt

import (
	"fmt"
	"slices"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
	"joiner/pkg/plan"
)

// together reports whether all pods that have a place or get one as it is still get one when the nodes of these commands go at
// once: what each command needs was asked for with all other pods standing still.
func (v *view) together(begun []Command, c Command) bool {
	s := v.s
	s.Nodes, s.Claims = slices.Clone(s.Nodes), slices.Clone(s.Claims)
	going := map[string]bool{}
	for _, x := range append(slices.Clone(begun), c) {
		if v.fixed(x.Claims) {
			continue // its pods have room on its replacement
		}
		for _, name := range x.Claims {
			going[v.byClaim[name].Node.Name] = true
		}
		for i, l := range x.Launches {
			s.Claims = append(s.Claims, cluster.Claim{Name: fmt.Sprintf("%s-%d", x.ID, i), Pool: l.Pool, Class: l.Class, Created: v.now(),
				Labels: l.Labels, Annotations: l.Annotations, Requirements: l.Requirements, Requests: l.Requests, Taints: l.Taints, StartupTaints: l.Startup})
		}
	}
	condemn(s.Nodes, going)
	homeless := map[string]bool{}
	for _, u := range v.base.Unplaced {
		homeless[u.Pod] = true
	}
	p := v.pack(s)
	return len(p.Launches) <= len(v.base.Launches) && !slices.ContainsFunc(p.Unplaced, func(u plan.Unplaced) bool { return !homeless[u.Pod] })
}

// condemn taints the nodes of those names. The list must be a copy.
func condemn(nodes []cluster.Node, names map[string]bool) {
	for i := range nodes {
		if names[nodes[i].Name] {
			nodes[i].Taints = append(slices.Clone(nodes[i].Taints), cluster.Taint{Key: v1.TaintDisrupted, Effect: "NoSchedule"})
		}
	}
}
