package sim_test

import (
	"testing"

	"joiner.sh/pkg/testing/objects"
	"joiner.sh/pkg/testing/shortrun"
	"joiner.sh/pkg/testing/sim"
)

var shortNodes = shortrun.NewCount("short-nodes", 30, 6, "how many worlds to play whose nodes are smaller than estimated")

// TestNodesThatAreSmallerThanEstimated plays types whose nodes turn out to have less CPU, memory or disk for pods than
// was estimated, or carry a taint or a cordon that no NodePool declares, so that pods for which they are bought never run
// there. No type is bought for them without end, and each pod comes to run.
func TestNodesThatAreSmallerThanEstimated(t *testing.T) {
	eachSeed(shortNodes.N(), func(seed uint64) {
		r := sim.RunScenario(t, sim.Scenario{Seed: seed, Catalog: objects.FewTypes(), Short: true, KeepAll: *story})
		if len(r.Violations) > 0 {
			t.Errorf("seed %d: %s\n%s", seed, r.Violations[0], r.Trace)
		}
	})
}
