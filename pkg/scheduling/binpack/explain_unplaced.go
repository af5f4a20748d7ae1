package binpack

import (
	"fmt"
	"maps"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/podclass"
)

// explainer says why pods of a solution have no place.
type explainer struct{ a *solution }

// explainUnplaced explains every pod without a home. Pods that are alike share the text.
func (e explainer) explainUnplaced() []plan.Unplaced {
	var out []plan.Unplaced
	for i, k := range e.a.w.classes.List {
		if len(e.a.rest[i]) == 0 {
			continue
		}
		why := e.refusalsFor(k)
		for _, p := range e.a.rest[i] {
			out = append(out, plan.Unplaced{Pod: p, Why: why})
		}
	}
	return out
}

// refusalsFor lists what kept the class from every pool, and what kept it back whatever the pool.
func (e explainer) refusalsFor(k *podclass.Class) []string {
	e.a.w.stages.Tell(cluster.StageExplain, k, "")
	if len(k.LastRelaxation().Wish.NodeAlternatives(true)) == 0 {
		return []string{"no node can meet what the pod asks for: its node selector, node affinity and volumes contradict each other"}
	}
	if k.Stays {
		return []string{"it stays on its node, which is being replaced, until there is room elsewhere"}
	}
	out := slices.Sorted(maps.Keys(e.a.blocked[k.ID]))
	held := len(out) > 0
	var pools poolRefusals
	for _, p := range inOrder(e.a.w.catalog, k.LastRelaxation().Admission) {
		if !pools.wantsMore() {
			continue
		}
		if why := e.poolRefusal(k.LastRelaxation(), p); why != "" {
			pools.addRefusal(p.Name, why)
			continue
		}
		switch {
		case e.a.w.s.Rules.MaxClaims == cluster.NoClaims:
			pools.addRefusal(p.Name, "maxNodes or maxNodesPerMinute allows no new node now")
		case e.a.used.claimsUsedUp():
			pools.addRefusal(p.Name, fmt.Sprintf(
				"the %d new nodes that one pass may make are used up, the next pass goes on", e.a.w.s.Rules.MaxClaims))
		case !held:
			pools.addRefusal(p.Name, e.explainCrowding(k.LastRelaxation()))
		}
	}
	for _, s := range e.a.w.catalog.Skipped {
		pools.addRefusal(s.Pool, s.Why)
	}
	out = append(out, pools.refusalLines()...)
	if len(e.a.w.catalog.Pools)+len(e.a.w.catalog.Skipped) == 0 {
		out = append(out, "there is no NodePool")
	}
	return out
}

// explainCrowding explains a class that a pool could hold were it not for other pods.
func (e explainer) explainCrowding(v *podclass.RelaxedPod) string {
	for _, r := range v.HostRules {
		if r.Kind == podclass.Follow {
			return "pod affinity over " + podclass.LabelHost +
				": no node has both the pods it must be near and room for it"
		}
	}
	return "its host ports or rules of other pods keep it from every node"
}
