package staticcapacity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
)

// mostRemovals bounds the nodes that one pass removes.
const mostRemovals = 100

// NodeCount counts the nodes of a pool, those that have not come yet included.
type NodeCount struct {
	Active   int // neither of the following
	Pending  int // go as soon as what replaces them is there
	Deleting int // marked for deletion
}

// Plan holds what one pass does about static pools.
type Plan struct {
	Launches []plan.Launch  // nodes that pools lack
	Removals []plan.Removal // nodes that they have too many
	Short    []plan.Skip    // pools that lack nodes and cannot get them now
}

// NextPlan decides what static pools need to have their number of nodes, at most so many launches. types is what a pool
// may launch.
func NextPlan(s cluster.Snapshot, types func(cluster.Pool) []instancetypes.Type, most int) Plan {
	out := Plan{Removals: SurplusNodes(s)}
	hosts := hostsOf(s)
	for _, p := range fixedPools(s) {
		c, _ := countNodes(hosts[p.Name])
		if c.Active > int(p.Replicas) {
			continue
		}
		lacks, why := nodesLacking(p, c)
		if lacks > 0 {
			why = unusableReason(s, p)
		}
		if lacks > 0 && why == "" {
			for purse := PurseOf(s, p, types(p)); lacks > 0 && len(out.Launches) < most; lacks-- {
				l, refused := purse.NextLaunch(lacks)
				if why = refused; why != "" {
					break
				}
				out.Launches = append(out.Launches, l)
			}
		}
		if why != "" {
			out.Short = append(out.Short, plan.Skip{Pool: p.Name, Why: why})
		}
	}
	return out
}

// SurplusNodes lists the nodes that static pools have too many, at most 100 of them.
func SurplusNodes(s cluster.Snapshot) []plan.Removal {
	var out []plan.Removal
	hosts := hostsOf(s)
	for _, p := range fixedPools(s) {
		if _, active := countNodes(hosts[p.Name]); len(active) > int(p.Replicas) {
			out = append(out, surplusNodes(s, p, active)...)
		}
	}
	return out[:min(len(out), mostRemovals)]
}

// fixedPools are the static pools that are to have their nodes, by name. One that sleeps is emptied by disruption, and
// has its nodes again when it wakes.
func fixedPools(s cluster.Snapshot) []cluster.Pool {
	fixed := lists.Where(s.Pools, func(p cluster.Pool) bool {
		return p.Static && !p.Deleting && !budgets.IsHibernating(p.Disruption, s.Now)
	})
	slices.SortFunc(fixed, func(a, b cluster.Pool) int { return strings.Compare(a.Name, b.Name) })
	return fixed
}

// NeedsChange reports whether a static pool has another number of nodes than it should and could have, as far as its
// claims tell.
func NeedsChange(s cluster.Snapshot) bool {
	hosts := hostsOf(s)
	return slices.ContainsFunc(fixedPools(s), func(p cluster.Pool) bool {
		c, _ := countNodes(hosts[p.Name])
		lacks, _ := nodesLacking(p, c)
		return c.Active > int(p.Replicas) || lacks > 0
	})
}

// NodesAllowed returns how many more nodes the pool's limit allows beside those that it has, and those that go.
func NodesAllowed(p cluster.Pool, c NodeCount) int {
	all := c.Active + c.Pending + c.Deleting
	if !slices.Contains(p.Limited, string(v1.LimitNodes)) {
		return int(p.Replicas) + all // as many as anybody could ask for
	}
	return max(0, int(p.Limits.Get(string(v1.LimitNodes)))-all)
}

// CountNodes counts the nodes of the pool of that name.
func CountNodes(s cluster.Snapshot, pool string) NodeCount {
	c, _ := countNodes(hostsOf(s)[pool])
	return c
}

// nodesLacking returns the number of nodes that the pool is to get now, or why it lacks some and gets none.
func nodesLacking(p cluster.Pool, c NodeCount) (n int, why string) {
	if c.Active+c.Pending >= int(p.Replicas) {
		return 0, ""
	}
	if n = min(int(p.Replicas)-c.Active, NodesAllowed(p, c)); n == 0 {
		return 0, fmt.Sprintf("it has %d of %d nodes, and its limit of %d counts %d that go as well", c.Active,
			p.Replicas,
			p.Limits.Get(string(v1.LimitNodes)), c.Pending+c.Deleting)
	}
	return n, ""
}

// unusableReason says why nothing can be launched from the pool, or nothing.
func unusableReason(s cluster.Snapshot, p cluster.Pool) string {
	class, found := s.ClassOf(p.ClassKey())
	switch {
	case !p.Ready:
		return "it is not ready: " + cmp.Or(p.Message, "no reason given")
	case !found:
		return "its EC2NodeClass " + p.Class + " does not exist"
	case !class.Ready:
		return "its EC2NodeClass " + p.Class + " is not ready: " + cmp.Or(class.Message, "no reason given")
	}
	return ""
}

// hostsOf are the nodes of each pool, and those on their way. A claim that never launched and that nobody may delete is
// none.
func hostsOf(s cluster.Snapshot) map[string][]cluster.StateNode {
	out := map[string][]cluster.StateNode{}
	for _, node := range s.StateNodes() {
		if node.Claim != nil && !node.Standby() && (node.Node != nil || !node.Claim.NeverLaunched(s.Now, s.Rules)) {
			out[node.Pool()] = append(out[node.Pool()], node)
		}
	}
	return out
}

func countNodes(hosts []cluster.StateNode) (c NodeCount, active []cluster.StateNode) {
	for _, node := range hosts {
		switch {
		case node.Deleting() || node.Claim.Is(v1.ConditionInstanceTerminating):
			c.Deleting++
		case node.Claim.Annotations[v1.AnnotationDisruptionCommand] != "":
			c.Pending++
		default:
			c.Active++
			active = append(active, node)
		}
	}
	return c, active
}
