package binpack

import (
	"fmt"
	"testing"

	"joiner.sh/pkg/model/faultisolation"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

var fullWorlds = shortrun.NewCount("full-worlds", 8, 2, "random worlds of nearly full nodes to play")

// littleWork is a quarter of the work that a plan gets by default, in milliseconds of one core: the least with which
// nodes that are there are filled by a search of its own.
const littleWork = 1000

// However large the cluster and however full its nodes: packing does not panic, the plan keeps every rule, and it costs
// no less than its bound.
func TestNearlyFullWorlds(t *testing.T) {
	full := randomWorlds{scenario.NearlyFull, scenario.NearlyFullText, fullWorlds.N(), *worldFlags.first}
	full.check(t, func(w *scenario.World) []string {
		w.Snapshot.Rules.PackingMilliseconds = littleWork
		var p plan.Plan
		if failed := faultisolation.Catch(func() { p = decide(w) }); failed != nil {
			return []string{fmt.Sprintf("%s at %s", failed, failed.Stack[:min(3, len(failed.Stack))])}
		}
		bad := w.Check(p)
		if len(p.Existing) == 0 || len(p.Launches) == 0 {
			bad = append(bad, fmt.Sprintf("%d pods on nodes that are there and %d new nodes test nothing",
				len(p.Existing), len(p.Launches)))
		}
		return bad
	})
}
