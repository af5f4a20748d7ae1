package sim

import (
	"maps"
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/nodeclass"
)

func (s *apiServer) nodeOf(c *claim) *node {
	for _, n := range s.nodes {
		if n.machine != nil && n.machine.owner == c.UID {
			return n
		}
	}
	return nil
}

func (s *apiServer) poolOf(name string) (cluster.Pool, bool) {
	for _, p := range s.pools {
		if p.Name == name {
			return p, true
		}
	}
	return cluster.Pool{}, false
}

// describedClasses are the classes as decisions see them.
func (s *apiServer) describedClasses() (out []instancetypes.Class) {
	for _, name := range slices.Sorted(maps.Keys(s.classes)) {
		c := nodeclass.DescribeClass(s.classes[name])
		c.Family, c.MemoryOverhead = instancetypes.AL2023, memoryOverhead
		out = append(out, c)
	}
	return out
}

// orderedFor is the claim that an order is for; of a batch, any that is still noted to share it, or nil.
func (s *apiServer) orderedFor(o launch.Order) *claim {
	if o.Batch.ID == "" {
		return s.byUID[o.ClaimUID]
	}
	shares := func(c *claim) bool { b, _ := c.Batch(); return b.ID == o.Batch.ID }
	if all := selectInOrder(s.claims, shares); len(all) > 0 {
		return all[0]
	}
	if all := selectInOrder(s.byUID, shares); len(all) > 0 { // deleted while the request was under way
		return all[0]
	}
	return nil
}

// selectInOrder are the objects of a map that are wanted, by their keys.
func selectInOrder[T any](objects map[string]T, want func(T) bool) []T {
	var keys []string
	for key, o := range objects {
		if want(o) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	out := make([]T, len(keys))
	for i, key := range keys {
		out[i] = objects[key]
	}
	return out
}

// inService reports whether the claim's node is: the node says so a moment before the claim does.
func (s *apiServer) inService(c *claim) bool {
	n := s.nodeOf(c)
	return c.Is(v1.ConditionInitialized) || n != nil && n.Ready && n.Labels[v1.LabelInitialized] == "true"
}

// readRest reads what a snapshot has beside pods, nodes and claims.
func (s *apiServer) readRest(out *cluster.Snapshot) {
	out.Pools, out.Classes = slices.Clone(s.pools), s.describedClasses()
	out.Namespaces, out.Stopped = slices.Clone(s.namespaces), slices.Clone(s.buffers)
	for _, a := range s.workloads.apps {
		if a.daemon {
			out.Daemons = append(out.Daemons, a.pattern)
		}
		if a.budget != nil {
			out.Budgets = append(out.Budgets, cluster.PodDisruptionBudget{Namespace: a.pattern.Namespace, Name: a.name,
				Selector:           a.appSelector(),
				DisruptionsAllowed: max(int32(s.workloads.allowedEvictions(a)), 0),
				AlwaysAllowUnready: a.budget.unhealthy})
		}
	}
}

// listPods are the pods that have not ended, by name, with the names of the claims of their volumes.
func (s *apiServer) listPods() []cluster.Pod {
	out := make([]cluster.Pod, 0, len(s.pods))
	for _, key := range slices.Sorted(maps.Keys(s.pods)) {
		if pod := s.pods[key]; !pod.Terminal() {
			seen := pod.Pod
			seen.Untried = pod.NodeName == "" && !pod.Unscheduled
			seen.UnreadClaims = pod.volumeClaims
			out = append(out, seen)
		}
	}
	return out
}

func (s *apiServer) podsOn(name string) []*pod {
	return selectInOrder(s.pods, func(p *pod) bool { return p.NodeName == name })
}

func (s *apiServer) limitReached() bool {
	return slices.ContainsFunc(s.pools, func(p cluster.Pool) bool { return len(p.Limited) > 0 })
}

// staticPool is the pool with a fixed number of nodes, or nil.
func (s *apiServer) staticPool() *cluster.Pool {
	if last := len(s.pools) - 1; last >= 0 && s.pools[last].Static {
		return &s.pools[last]
	}
	return nil
}
