package pack

import (
	"testing"

	"joiner/pkg/plan"
	"joiner/pkg/scenario"
)

func decide(w *scenario.World) plan.Plan { return pods(w.Snapshot, w.Market) }

func TestScenarios(t *testing.T) { scenario.Run(t, "testdata", decide) }

// Whatever the cluster looks like: the plan keeps the rules, does not depend on the order of its input, and is complete
// once its claims are on their way.
func TestRandomWorlds(t *testing.T) {
	placed := 0
	for seed := range uint64(300) {
		w, err := scenario.Random(seed)
		if err != nil {
			t.Fatal(err)
		}
		p := decide(w)
		for _, fault := range w.Faults(p, decide) {
			t.Errorf("seed %d: %s", seed, fault)
		}
		placed += len(p.Existing) + len(p.Launches)
	}
	if placed < 300 {
		t.Errorf("only %d placements in all worlds, which tests nothing", placed)
	}
}
