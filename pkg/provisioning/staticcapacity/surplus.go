package staticcapacity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// The order in which nodes go that a pool has too many.
const (
	unlaunched = iota
	empty
	movable
	protected
)

// removalRank is one node in that order.
type removalRank struct {
	host  cluster.StateNode
	class int
	cost  float64 // of evicting its pods, by what is left of the node's life
}

// surplusNodes are the nodes that the pool has too many, those first that nobody will miss. Budgets do not bound them:
// it is the user who asks for fewer.
func surplusNodes(s cluster.Snapshot, p cluster.Pool, active []cluster.StateNode) []plan.Removal {
	on := s.PodsByNode()
	var ranks []removalRank
	for _, node := range active {
		r := removalRank{host: node, class: unlaunched}
		if node.Claim.ProviderID != "" {
			var pods []*cluster.Pod
			if node.Node != nil {
				pods = on[node.Node.Name]
			}
			r.class, r.cost = surplusClass(s, pods), costOf(pods)*remainingLife(s, *node.Claim)
		}
		ranks = append(ranks, r)
	}
	slices.SortFunc(ranks, func(a, b removalRank) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.cost, b.cost),
			strings.Compare(a.host.Claim.Name, b.host.Claim.Name))
	})
	var out []plan.Removal
	for _, r := range ranks[:len(active)-int(p.Replicas)] {
		out = append(out, plan.Removal{Claim: r.host.Claim.Name, Pool: p.Name,
			Why: fmt.Sprintf("NodePool %s has %d nodes and is to have %d; %s",
				p.Name, len(active), p.Replicas, [...]string{"it has no instance yet", "it is empty",
					"its pods cost least to move", "no other is free of pods that must not be disrupted"}[r.class])})
	}
	return out
}

func surplusClass(s cluster.Snapshot, pods []*cluster.Pod) int {
	blocked := slices.ContainsFunc(pods, func(p *cluster.Pod) bool { return p.Active() && p.Protected(s.Now) })
	switch {
	case blocked:
		return protected
	case !slices.ContainsFunc(pods, func(p *cluster.Pod) bool { return p.Owner != cluster.OwnerDaemonSet }):
		return empty
	}
	return movable
}

func costOf(pods []*cluster.Pod) (sum float64) {
	slices.SortFunc(pods, func(a, b *cluster.Pod) int { return strings.Compare(a.Key(), b.Key()) })
	for _, p := range pods {
		sum += p.EvictionCost()
	}
	return sum
}

// remainingLife is the part of its life that the claim has before it, from 0 to 1.
func remainingLife(s cluster.Snapshot, c cluster.Claim) float64 {
	if c.ExpireAfter <= 0 {
		return 1
	}
	left := c.Created.Add(c.ExpireAfter).Sub(s.Now)
	return min(max(float64(left)/float64(c.ExpireAfter), 0), 1)
}
