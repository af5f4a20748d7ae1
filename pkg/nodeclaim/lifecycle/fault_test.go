package lifecycle_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/lifecycle"
	"joiner.sh/pkg/testing/faults"
)

// Where the decision about one object fails, whatever its stage, that object stays as it is and is named, and all others
// take the steps that they take anyhow.
func TestADecisionFailsForOneObject(t *testing.T) {
	failed := map[string]int{}
	for seed := range uint64(60) {
		s := random(seed)
		whole := lifecycle.Next(s)
		for _, c := range s.Claims {
			switch {
			case c.Deleting.IsZero():
				failed[lifecycle.StageLive] += failAt(t, s, whole, lifecycle.StageLive, c.Name)
			case c.Finalizer:
				failed[lifecycle.StageEnding] += failAt(t, s, whole, lifecycle.StageEnding, c.Name)
			}
		}
		for _, n := range s.Nodes {
			failed[lifecycle.StageNode] += failAt(t, s, whole, lifecycle.StageNode, n.Name)
		}
	}
	for _, stage := range []string{lifecycle.StageLive, lifecycle.StageEnding, lifecycle.StageNode} {
		if failed[stage] < 10 {
			t.Errorf("%d decisions failed at stage %s, which tests little", failed[stage], stage)
		}
	}
}

// failAt plants a fault and returns how many decisions failed by it.
func failAt(t *testing.T, s cluster.Snapshot, whole lifecycle.Plan, stage, name string) int {
	t.Helper()
	s.Follower = &faults.Fault{Stage: stage, About: name}
	got := lifecycle.Next(s)
	if len(got.Faults) != 1 || got.Faults[0].Name != name {
		t.Errorf("stage %s of %s: faults %v", stage, name, got.Faults)
	}
	others := func(list []plan.Action) []plan.Action {
		return slices.DeleteFunc(slices.Clone(list), func(a plan.Action) bool {
			return a.Claim == name || stage == lifecycle.StageNode && a.Node == name
		})
	}
	if diff := cmp.Diff(others(whole.Actions), others(got.Actions), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("stage %s of %s, about others (-without a fault +with it):\n%s", stage, name, diff)
	}
	return len(got.Faults)
}
