package main

import (
	"cmp"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/scheduling/binpack"
)

// snapshotOf is the scenario as Joiner reads it.
func snapshotOf(c instancetypes.Catalog, s *scenario) cluster.Snapshot {
	class := instancetypes.DefaultClass(c)
	out := cluster.Snapshot{Now: s.Now.UTC(), Catalog: c, Classes: []instancetypes.Class{class},
		Namespaces: []cluster.Namespace{{Name: "default"}, {Name: "kube-system"}, {Name: "other"}},
		Rules:      cluster.Settings{NominatedPodsOnly: true, RelaxMinValues: s.BestEffort}}
	for i := range s.Pools {
		out.Pools = append(out.Pools, translate.Pool(&s.Pools[i], out.Classes))
	}
	for i := range s.Claims {
		out.Claims = append(out.Claims, translate.Claim(&s.Claims[i]))
	}
	for i := range s.Nodes {
		out.Nodes = append(out.Nodes, translate.Node(&s.Nodes[i]))
	}
	for i := range s.Pods {
		if p := translate.Pod(&s.Pods[i]); !p.Terminal() { // others are not read
			out.Pods = append(out.Pods, p)
		}
	}
	for i := range s.Budgets {
		out.Budgets = append(out.Budgets, translate.Budget(&s.Budgets[i]))
	}
	for i := range s.DaemonSets {
		out.Daemons = append(out.Daemons, translate.DaemonPod(&s.DaemonSets[i]))
	}
	slices.SortFunc(out.Claims, func(a, b cluster.Claim) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Nodes, func(a, b cluster.Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Pods, func(a, b cluster.Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out
}

// nominatedNodes are the nodes on which pods are about to run.
func nominatedNodes(p plan.Plan) []string {
	var out []string
	for _, x := range p.Existing {
		out = append(out, x.Node)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pendingPods are the pods that wait, or whose node goes already, and for which no node that exists has room.
func pendingPods(p plan.Plan) []string {
	var out []string
	for _, l := range p.Launches {
		out = append(out, l.Pods...)
	}
	for _, u := range p.Unplaced {
		out = append(out, u.Pod)
	}
	return out
}

// placePods returns where pods go that wait, or whose node goes already, by a plan that is as simple as a question of
// disruption is: others may be as good, and which of them a provisioner chooses is not what is compared.
func placePods(s cluster.Snapshot, sells binpack.Offerings) plan.Plan {
	s.Rules.PackingIterations, s.Rules.PerNodeOverheadUSD = cluster.NoIterations, 0.02
	return binpack.PodsFrom(s, sells)
}
