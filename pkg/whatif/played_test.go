package whatif_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/testing/objects"
	"joiner.sh/pkg/testing/shortrun"
	"joiner.sh/pkg/testing/sim"
	"joiner.sh/pkg/whatif"
)

var (
	playedPods   = shortrun.NewCount("played-pods", 100, 5, "simulated clusters in which a change for a pod that waits is made")
	playedGuards = shortrun.NewCount("played-guards", 100, 5, "simulated clusters of which a protection is taken away")
)

// playEdit plays the seed with the edit. A problem of the simulation fails the test.
func playEdit(t *testing.T, seed uint64, e sim.EditTrial) sim.EditOutcome {
	t.Helper()
	r := sim.RunScenario(t, sim.Scenario{Seed: seed, Catalog: objects.FewTypes(), Edit: &e})
	if len(r.Violations) > 0 {
		t.Errorf("seed %d: %s\n%s", seed, r.Violations[0], r.Trace)
	}
	return r.Edit
}

// In the simulator, with all functions and a scheduler of its own, a pod that waits comes to a node when the change is
// made that is said to help.
func TestChangesHelpWhenPlayed(t *testing.T) {
	helped := 0
	for seed := range uint64(playedPods.N()) {
		key, said := "", ""
		out := playEdit(t, seed, sim.EditTrial{Waiting: true, Edit: func(s cluster.Snapshot, _ disruption.Memory) (cluster.Snapshot, bool) {
			for _, p := range s.Pods {
				a := whatif.ForPod(s, binpack.ResolveOfferings(s), p.Key(), whatif.Limits{})
				if len(a.Changes) > 0 {
					x := a.Changes[int(seed)%len(a.Changes)]
					key, said = p.Key(), x.String()
					return x.Apply(s), true
				}
			}
			return s, false
		}})
		switch {
		case key != "" && out.Nodes[key] == "":
			t.Errorf("seed %d: pod %s still waits after: %s", seed, key, said)
		case key != "":
			helped++
		}
	}
	t.Logf("%d changes were made in %d clusters", helped, playedPods.N())
	if helped < playedPods.N()/3 {
		t.Errorf("%d changes in %d clusters test little", helped, playedPods.N())
	}
}

// In the simulator, what a protection is said to cost is what comes when it is taken away: at least nine tenths in the
// median, and at least half in all but one of fifty: the scheduler may put pods where they leave others no room, and a
// node is launched for these.
func TestProtectionsCostWhatIsSaidWhenPlayed(t *testing.T) {
	var parts []float64
	var small []string
	for seed := range uint64(playedGuards.N()) {
		var taken whatif.Protection
		out := playEdit(t, seed, sim.EditTrial{Edit: func(s cluster.Snapshot, m disruption.Memory) (cluster.Snapshot, bool) {
			sells := binpack.ResolveOfferings(s)
			all := whatif.Protections(s, m, sells, nil, whatif.Limits{})
			if len(all) == 0 {
				return s, false
			}
			taken = all[int(seed)%len(all)]
			return whatif.WithoutProtection(s, m, sells, taken), true
		}})
		if taken.Nodes == 0 {
			continue
		}
		part := 24 * (out.USDBefore - out.USDAfter) / taken.DailyUSD
		if parts = append(parts, part); part < 0.5 {
			small = append(small, fmt.Sprintf("seed %d: %s: %.2f of it comes", seed, taken, part))
		}
	}
	if len(small) > len(parts)/50 {
		t.Errorf("less than half comes of %d of %d:\n%s", len(small), len(parts), strings.Join(small, "\n"))
	}
	slices.Sort(parts)
	if len(parts) < playedGuards.N()/3 {
		t.Fatalf("%d protections in %d clusters test little", len(parts), playedGuards.N())
	}
	t.Logf("%d protections: the least part that comes is %.2f, the median %.2f", len(parts), parts[0], parts[len(parts)/2])
	if median := parts[len(parts)/2]; median < 0.9 {
		t.Errorf("in the median %.2f of what is said comes", median)
	}
}
