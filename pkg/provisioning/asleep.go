package provisioning

import (
	"slices"

	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/faultisolation"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/binpack"
)

// HibernatingPods returns the unplaced pods, by namespace/name, that only wait until a NodePool wakes: were all
// NodePools awake, they would have a place on what classes may launch. Where that cannot be decided nobody only waits.
func HibernatingPods(s cluster.Snapshot, sells binpack.Offerings, unplaced []plan.Unplaced) map[string]bool {
	if len(unplaced) == 0 || !slices.ContainsFunc(s.Pools,
		func(p cluster.Pool) bool { return budgets.IsHibernating(p.Disruption, s.Now) }) {
		return nil
	}
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		s.Pools[i].Disruption.SleepAt, s.Pools[i].Disruption.SleepFor = "", 0
	}
	s.Rules.PackingIterations = cluster.NoIterations // who finds a place is asked, not at what price
	out := map[string]bool{}
	failed := map[string]bool{}
	for _, u := range unplaced {
		out[u.Pod], failed[u.Pod] = !u.Fault, u.Fault
	}
	s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p cluster.Pod) bool { return failed[p.Key()] })
	if faultisolation.Catch(func() {
		for _, u := range binpack.PodsFrom(s, sells).Unplaced {
			delete(out, u.Pod)
		}
	}) != nil {
		return nil
	}
	return out
}
