package binpack

import (
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/search"
)

// Offerings tells the instance types that a class may launch.
type Offerings func(class string) []instancetypes.Type

// ResolveOfferings is the market of the snapshot's catalog. It resolves each class once and may not be used
// concurrently.
func ResolveOfferings(s cluster.Snapshot) Offerings {
	known := map[string][]instancetypes.Type{}
	return func(class string) []instancetypes.Type {
		types, ok := known[class]
		if c, exists := s.ClassOf(class); !ok && exists {
			types = resolveClass(s, c)
			known[class] = types
		}
		return types
	}
}

// resolveClass returns the class's instance types at what its nodes cost: with commitments and, unless prices are those
// of instances alone, volumes, addresses and what the owner declares.
func resolveClass(s cluster.Snapshot, c instancetypes.Class) []instancetypes.Type {
	types := s.Catalog.AddCommitments(instancetypes.ResolveTypes(s.Catalog, c, s.Unavailable, s.Now))
	if !s.Rules.InstancePrices {
		cost := s.Catalog.NodeCostOf(c)
		cost.Declared = s.Rules.DeclaredNodeUSD
		types = instancetypes.AddNodeCosts(types, cost)
	}
	return types
}

// Pods decides where every pod without a place goes. It depends on nothing but the snapshot: equal snapshots give equal
// plans, in whatever order their lists are.
func Pods(s cluster.Snapshot) plan.Plan { return PodsFrom(s, ResolveOfferings(s)) }

// PodsFrom is Pods with the market given, which is worth keeping where the same question is asked of many snapshots.
func PodsFrom(s cluster.Snapshot, sells Offerings) plan.Plan {
	return search.SolveProblem(packing.NewProblem(s, sells))
}
