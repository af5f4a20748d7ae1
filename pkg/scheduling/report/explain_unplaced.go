package report

import (
	"fmt"
	"maps"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/podclass"
)

// ExplainUnplaced explains every pod without a home. Pods that are alike share the text.
func (e Explainer) ExplainUnplaced() []plan.Unplaced {
	var out []plan.Unplaced
	for i, class := range e.Solution.W.Classes.List {
		if len(e.Solution.Rest[i]) == 0 {
			continue
		}
		why := e.refusalsFor(class)
		for _, p := range e.Solution.Rest[i] {
			out = append(out, plan.Unplaced{Pod: p, Why: why})
		}
	}
	return out
}

// refusalsFor lists what kept the class from every pool, and what kept it back whatever the pool.
func (e Explainer) refusalsFor(class *podclass.Class) []string {
	e.Solution.W.Stages.Tell(cluster.StageExplain, class, "")
	if len(class.LastRelaxation().Wish.NodeAlternatives(true)) == 0 {
		return []string{"no node can meet what the pod asks for: its node selector, node affinity and volumes contradict each other"}
	}
	if class.Stays {
		return []string{"it stays on its node, which is being replaced, until there is room elsewhere"}
	}
	out := slices.Sorted(maps.Keys(e.Solution.Blocked[class.ID]))
	held := len(out) > 0
	var pools poolRefusals
	for _, p := range inOrder(e.Solution.W.Catalog, class.LastRelaxation().Admission) {
		if !pools.wantsMore() {
			continue
		}
		if why := e.poolRefusal(class.LastRelaxation(), p); why != "" {
			pools.addRefusal(p.Name, why)
			continue
		}
		switch {
		case e.Solution.W.S.Rules.MaxClaims == cluster.NoClaims:
			pools.addRefusal(p.Name, "maxNodes or maxNodesPerMinute allows no new node now")
		case e.Solution.Used.ClaimsUsedUp():
			pools.addRefusal(p.Name, fmt.Sprintf(
				"the %d new nodes that one pass may make are used up, the next pass goes on",
				e.Solution.W.S.Rules.MaxClaims))
		case !held:
			pools.addRefusal(p.Name, e.explainCrowding(class.LastRelaxation()))
		case !e.Solution.W.S.Rules.RelaxMinValues:
			for _, key := range e.Solution.W.Topology.KeysOf(class.LastRelaxation()) {
				if r, _ := p.Required.Get(key); r.MinValues > 1 {
					pools.addRefusal(p.Name, fmt.Sprintf("minValues wants each node to be possible with %d values of %s, "+
						"and a rule over it ties each pod to one", r.MinValues, key))
				}
			}
		}
	}
	for _, s := range e.Solution.W.Catalog.Skipped {
		pools.addRefusal(s.Pool, s.Why)
	}
	out = append(out, pools.refusalLines()...)
	if len(e.Solution.W.Catalog.Pools)+len(e.Solution.W.Catalog.Skipped) == 0 {
		out = append(out, "there is no NodePool")
	}
	return out
}

// explainCrowding explains a class that a pool could hold were it not for other pods.
func (e Explainer) explainCrowding(pod *podclass.RelaxedPod) string {
	for _, t := range pod.Class.Pod.Affinity {
		if claim := t.SharedClaim(); claim != "" {
			return "ResourceClaim " + claim + ": no node has room for all pods that share it"
		}
	}
	for _, r := range pod.HostRules {
		if r.Kind == podclass.Follow {
			return "pod affinity over " + podclass.LabelHost +
				": no node has both the pods it must be near and room for it"
		}
	}
	return "its host ports or rules of other pods keep it from every node"
}
