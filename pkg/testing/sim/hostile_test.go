package sim_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/provisioning"
	"joiner.sh/pkg/testing/objects"
	"joiner.sh/pkg/testing/shortrun"
	"joiner.sh/pkg/testing/sim"
)

var hostile = flag.Int("hostile", 40, "how many clusters with hostile tenants TestHostileTenants plays, by seeds from first on")

// hostileProblems are the others who get less beside hostile tenants than without, and what of those is not refused with
// a reason or would be refused by the API server.
func hostileProblems(alone, beside cluster.Snapshot) (bad []string) {
	without, with := provisioning.Decide(alone).Plan, provisioning.Decide(beside).Plan
	lacks := map[string]bool{}
	for _, u := range without.Unplaced {
		lacks[u.Pod] = true
	}
	for _, u := range with.Unplaced {
		switch ours := !strings.HasPrefix(u.Pod, sim.HostileNamespace+"/"); {
		case ours && !lacks[u.Pod]:
			bad = append(bad, fmt.Sprintf("%s has a place alone: %s", u.Pod, u.Message()))
		case u.Message() == "":
			bad = append(bad, u.Pod+" is refused without a reason")
		}
	}
	for _, f := range with.Faults {
		bad = append(bad, "fault: "+f.Why)
	}
	for _, l := range with.AllLaunches() {
		if n := len(l.Requirements.All()); n > 100 {
			bad = append(bad, fmt.Sprintf("a launch has %d requirements, of which a NodeClaim takes 100", n))
		}
		for k, v := range l.Labels {
			if why := slices.Concat(validation.IsQualifiedName(k), validation.IsValidLabelValue(v)); len(why) > 0 {
				bad = append(bad, fmt.Sprintf("label %s=%q of a launch: %s", k, v, why[0]))
			}
		}
	}
	if n, most := len(launchesOfOthers(with)), 2*len(without.AllLaunches())+3; n > most {
		bad = append(bad, fmt.Sprintf("others are on %d new nodes, alone on %d", n, len(without.AllLaunches())))
	}
	return bad
}

func launchesOfOthers(p plan.Plan) []plan.Launch {
	return slices.DeleteFunc(slices.Clone(p.AllLaunches()), func(l plan.Launch) bool {
		return !slices.ContainsFunc(l.Pods, func(pod string) bool { return !strings.HasPrefix(pod, sim.HostileNamespace+"/") })
	})
}

// TestHostileTenants draws clusters of several tenants with hostile ones beside them: make hostile SEEDS=n. The others
// get what they would get without.
func TestHostileTenants(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	n := *hostile
	if testing.Short() {
		n = min(n, 12)
	}
	eachSeed(n, func(seed uint64) {
		alone, beside, words := sim.HostileCluster(seed, objects.FewTypes())
		bad := hostileProblems(alone, beside)
		mu.Lock()
		defer mu.Unlock()
		for _, w := range words {
			seen[w]++
		}
		if len(bad) > 0 {
			t.Errorf("seed %d, %s:\n%s", seed, strings.Join(words, "; "), strings.Join(bad[:min(3, len(bad))], "\n"))
		}
	})
	if n >= 200 && len(seen) != sim.Hostilities() {
		t.Errorf("of %d kinds of hostility %d were drawn", sim.Hostilities(), len(seen))
	}
	t.Logf("%d clusters: %v", n, seen)
}

var hostileTime = shortrun.NewCount("hostile-time", 40, 2, "how many worlds with a hostile tenant to play over time")

// TestHostileTenantsOverTime plays a tenant who means the others ill beside apps that come, grow, shrink and are
// interrupted, while all functions run: make hostile SEEDS=n. No pod of the others waits longer for it, or stays on a
// node that is to go.
func TestHostileTenantsOverTime(t *testing.T) {
	eachSeed(hostileTime.N(), func(seed uint64) {
		r := sim.RunScenario(t, sim.Scenario{Seed: seed, Catalog: objects.FewTypes(), Hostile: true, KeepAll: *story})
		if len(r.Violations) > 0 {
			t.Errorf("seed %d: %s\n%s", seed, r.Violations[0], r.Trace)
		}
	})
}
