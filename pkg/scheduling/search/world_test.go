package search_test

import (
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/search"
	"joiner.sh/pkg/testing/scenario"
)

func solve(s cluster.Snapshot, sells func(class string) []instancetypes.Type) plan.Plan {
	return search.SolveProblem(packing.NewProblem(s, sells))
}

func decide(w *scenario.World) plan.Plan { return solve(w.Snapshot, w.Market) }
