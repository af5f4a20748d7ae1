package sim_test

import (
	"flag"
	"slices"
	"sync"
	"testing"

	"joiner.sh/pkg/testing/objects"
	"joiner.sh/pkg/testing/shortrun"
	"joiner.sh/pkg/testing/sim"
)

var spotWorlds = flag.Int("spot", 10, "how many worlds that learn spot pools TestSpotPools plays, by seeds from first on")

// spotPoints are the crash points that only worlds have which learn spot pools.
func spotPoints() []sim.CrashPoint {
	return pointsOf([]calls{
		{"provision", []string{"note spot events"}},
		{"spotinterruption", []string{"note spot events"}},
		{"rebalance", []string{"note spot events"}},
		{"refresh", []string{"read spot record", "read spot records of others", "list spot events", "write spot record", "forget spot events"}},
	})
}

// TestSpotPools plays storms in which Joiner learns spot pools, beside a cluster whose record cannot be true, while the
// record is lost now and then and invocations die at each of their calls: make spot-pools SEEDS=n. All invariants of
// storms hold, no event counts twice, and at rest every one counts.
func TestSpotPools(t *testing.T) {
	shortrun.Skip(t)
	var mu sync.Mutex
	points := spotPoints()
	hit, sum := map[sim.CrashPoint]bool{}, sim.SpotOutcome{}
	eachSeed(*spotWorlds, func(seed uint64) {
		aim, cost := points[seed%uint64(len(points))], []float64{0.012, 0.1, 2}[seed/7%3]
		r := sim.RunScenario(t, sim.Scenario{Seed: seed, Catalog: objects.FewTypes(), Aims: []sim.CrashPoint{aim}, SpotPools: cost, KeepAll: *story})
		mu.Lock()
		defer mu.Unlock()
		for _, v := range r.Violations[:min(1, len(r.Violations))] {
			t.Errorf("seed %d, aims at %s: %s\n%s", seed, aim, v, r.Trace)
		}
		for _, p := range r.Hit {
			hit[p] = true
		}
		for _, p := range r.Calls {
			if !hasCall(crashPoints(), p) && !hasCall(points, p) && !hasCall(ownStoppedPoints(), p) {
				t.Errorf("%s calls %q, which spotPoints does not list", p.Function, p.Call)
			}
		}
		sum.Noted, sum.Counted, sum.Lost = sum.Noted+r.SpotPools.Noted, sum.Counted+r.SpotPools.Counted, sum.Lost+r.SpotPools.Lost
	})
	t.Logf("%d worlds: %.1f of %d events were counted, the record was lost %d times", *spotWorlds, sum.Counted, sum.Noted, sum.Lost)
	if sum.Noted == 0 || sum.Lost == 0 {
		t.Error("nothing was learned, or nothing lost")
	}
	missed := slices.DeleteFunc(slices.Clone(points), func(p sim.CrashPoint) bool { return hit[p] })
	if t.Logf("%d of %d crash points were hit", len(points)-len(missed), len(points)); len(missed) > 0 && *spotWorlds >= 4*len(points) {
		t.Errorf("not hit: %v", missed)
	}
}
