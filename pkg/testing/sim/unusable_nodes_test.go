package sim_test

import (
	"testing"

	"joiner.sh/pkg/testing/objects"
	"joiner.sh/pkg/testing/shortrun"
	"joiner.sh/pkg/testing/sim"
)

var unusableNodes = shortrun.NewCount("unusable-nodes", 30, 3, "how many worlds to play whose nodes never become usable")

// TestNodesThatNeverBecomeUsable plays an agent that never starts on nodes of some types, or on all until somebody mends
// it. No type and no class is bought without end; pods that ask for a type that works get it at once, and all run once
// the agent starts.
func TestNodesThatNeverBecomeUsable(t *testing.T) {
	eachSeed(unusableNodes.N(), func(seed uint64) {
		r := sim.RunScenario(t, sim.Scenario{Seed: seed, Catalog: objects.FewTypes(), Unusable: true, KeepAll: *story})
		if len(r.Violations) > 0 {
			t.Errorf("seed %d: %s\n%s", seed, r.Violations[0], r.Trace)
		}
	})
}
