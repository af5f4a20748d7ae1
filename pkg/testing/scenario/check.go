package scenario

import (
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/testing/plancheck"
)

// Check returns what is wrong with the plan by the rules of Kubernetes and of NodePools, looking at every shape that a
// new node may take.
func (w *World) Check(p plan.Plan) []string {
	return plancheck.CheckPlan(plancheck.World{Snapshot: w.Snapshot, Sells: w.Market}, p)
}
