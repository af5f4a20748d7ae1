package staticcapacity_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/provisioning/staticcapacity"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/syntax"
)

// TestScenarios plays testdata: the words of a scenario's world, "static [most=N]" prints what is decided, "apply"
// launches and removes it, and "change CLAIM" takes lines deleting, pending, terminating, aged AGE LIFE; "replicas POOL
// N"; "end POD"; "sleep" lets the first pool sleep.
func TestScenarios(t *testing.T) {
	words := syntax.NewGrammar(scenario.Words(), "static most=#", "apply", "replicas POOL COUNT", "end POD", "sleep", "change CLAIM")
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := scenario.New()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := words.Check(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			switch d.Cmd {
			case "static":
				most := math.MaxInt
				if d.HasArg("most") {
					d.ScanArgs(t, "most", &most)
				}
				return decide(t, w, most)
			case "apply":
				p := next(w, math.MaxInt)
				w = w.Launched(plan.Plan{Launches: p.Launches})
				for _, r := range p.Removals {
					w.Snapshot.Claims = slices.DeleteFunc(w.Snapshot.Claims, func(c cluster.Claim) bool { return c.Name == r.Claim })
				}
			case "replicas":
				i := slices.IndexFunc(w.Snapshot.Pools, func(p cluster.Pool) bool { return p.Name == d.CmdArgs[0].Key })
				fmt.Sscan(d.CmdArgs[1].Key, &w.Snapshot.Pools[i].Replicas)
			case "end":
				i := slices.IndexFunc(w.Snapshot.Pods, func(p cluster.Pod) bool { return p.Name == d.CmdArgs[0].Key })
				w.Snapshot.Pods[i].Phase = "Succeeded"
			case "sleep":
				w.Snapshot.Pools[0].Disruption.SleepAt, w.Snapshot.Pools[0].Disruption.SleepFor = "@hourly", time.Hour
			case "change":
				change(t, w, d)
			default:
				if known, err := w.Do(d); err != nil || !known {
					d.Fatalf(t, "%q: %v", d.Cmd, err)
				}
			}
			return "ok\n"
		})
	})
}

func change(t *testing.T, w *scenario.World, d *datadriven.TestData) {
	t.Helper()
	i := slices.IndexFunc(w.Snapshot.Claims, func(c cluster.Claim) bool { return c.Name == d.CmdArgs[0].Key })
	if i < 0 {
		d.Fatalf(t, "no claim %s", d.CmdArgs[0].Key)
	}
	c := &w.Snapshot.Claims[i]
	for l := range strings.SplitSeq(d.Input, "\n") {
		switch f := strings.Fields(l); f[0] {
		case "deleting":
			c.Deleting = w.Snapshot.Now
		case "pending":
			c.Annotations = map[string]string{v1.AnnotationDisruptionCommand: "{}"}
		case "terminating":
			c.Conditions = append(c.Conditions, cluster.Condition{Type: v1.ConditionInstanceTerminating, Status: "True"})
		case "aged":
			age, _ := time.ParseDuration(f[1])
			life, err := time.ParseDuration(f[2])
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			c.Created, c.ExpireAfter = w.Snapshot.Now.Add(-age), life
		default:
			d.Fatalf(t, "%v", syntax.UnknownWord("word", f[0], "deleting", "pending", "terminating", "aged"))
		}
	}
}

func next(w *scenario.World, most int) staticcapacity.Plan {
	return staticcapacity.NextPlan(w.Snapshot, overlays.ByPool(w.Snapshot, w.Market), most)
}

// decide prints the plan. It must not depend on the order of the input, and be empty as soon as it is said that nothing
// is to do.
func decide(t *testing.T, w *scenario.World, most int) string {
	t.Helper()
	text := func(p staticcapacity.Plan) string {
		var b strings.Builder
		for _, l := range (plan.Plan{Fixed: p.Launches, Removals: p.Removals, Short: p.Short}).Lines() {
			b.WriteString(l + "\n")
		}
		for _, l := range p.Launches[:min(1, len(p.Launches))] {
			fmt.Fprintf(&b, "  requires %s\n  labels %v\n  requests %q\n", l.Requirements, l.Labels, l.Requests)
		}
		return b.String()
	}
	p := next(w, most)
	got := text(p)
	for seed := range uint64(3) {
		if again := text(next(w.Shuffled(seed), most)); again != got {
			t.Errorf("shuffled with seed %d it is\n%s\nnot\n%s", seed, again, got)
		}
	}
	if !staticcapacity.NeedsChange(w.Snapshot) && len(p.Launches)+len(p.Removals) > 0 {
		t.Error("settled, and still something is to be done")
	}
	return got
}

// What one pass removes is bounded, and the next one goes on.
func TestRemovalsAreBounded(t *testing.T) {
	s := cluster.Snapshot{Pools: []cluster.Pool{{Name: "p", Static: true, Replicas: 1}}}
	for i := range 130 {
		s.Claims = append(s.Claims, cluster.Claim{Name: fmt.Sprintf("c%03d", i), Pool: "p"})
	}
	got := staticcapacity.NextPlan(s, func(cluster.Pool) []instancetypes.Type { return nil }, math.MaxInt)
	if len(got.Removals) != 100 || got.Removals[99].Claim != "c099" {
		t.Errorf("%d removals, want the first 100", len(got.Removals))
	}
}

// Only pools with a fixed number of nodes that stay and are awake have something to be settled.
func TestUnsettled(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 30, 0, 0, time.UTC)
	asleep := cluster.Disruption{SleepAt: "@hourly", SleepFor: 40 * time.Minute}
	limited := cluster.Pool{Static: true, Replicas: 2, Limits: resources.List{}.With("nodes", 1), Limited: []string{"nodes"}}
	for _, c := range []struct {
		name   string
		pool   cluster.Pool
		claims int
		want   bool
	}{
		{"as many as there are to be", cluster.Pool{Static: true, Replicas: 1}, 1, false},
		{"too few", cluster.Pool{Static: true, Replicas: 2}, 1, true},
		{"too many", cluster.Pool{Static: true, Replicas: 1}, 2, true},
		{"too few, and no room under the limit", limited, 1, false},
		{"no static pool", cluster.Pool{Replicas: 2}, 1, false},
		{"one that is being deleted", cluster.Pool{Static: true, Replicas: 2, Deleting: true}, 1, false},
		{"one that sleeps", cluster.Pool{Static: true, Replicas: 2, Disruption: asleep}, 1, false},
	} {
		s := cluster.Snapshot{Now: now, Pools: []cluster.Pool{c.pool}}
		for i := range c.claims {
			s.Claims = append(s.Claims, cluster.Claim{Name: fmt.Sprint(i)})
		}
		if got := staticcapacity.NeedsChange(s); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// A claim that never launched, and is still there after lifecycle has given it up, is no node of its pool: it gets
// another one, and none goes for it. Until then it may become one.
func TestAClaimThatNeverLaunchedIsNoNode(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	types := func(cluster.Pool) []instancetypes.Type {
		return []instancetypes.Type{{Name: "m5.large", Offerings: []instancetypes.Offering{{Available: true, Price: 1,
			OfferingKey: instancetypes.OfferingKey{Type: "m5.large", CapacityType: instancetypes.OnDemand, Zone: "a"}}}}}
	}
	for age, launches := range map[time.Duration]int{20*time.Minute - time.Second: 0, 20 * time.Minute: 1} {
		s := cluster.Snapshot{Now: now, Rules: cluster.Settings{LaunchTimeout: 5 * time.Minute, RegistrationTimeout: 15 * time.Minute},
			Classes: []instancetypes.Class{{Name: "default", Ready: true}},
			Pools:   []cluster.Pool{{Name: "p", Class: "default", Static: true, Replicas: 2, Ready: true}},
			Claims: []cluster.Claim{{Name: "stuck", UID: "1", Pool: "p", Class: "default", Created: now.Add(-age)},
				{Name: "runs", UID: "2", Pool: "p", Class: "default", Created: now.Add(-time.Hour), ProviderID: "aws:///a/i-1",
					Conditions: []cluster.Condition{{Type: v1.ConditionLaunched, Status: "True"}}}}}
		p := staticcapacity.NextPlan(s, types, math.MaxInt)
		if len(p.Launches) != launches || len(p.Removals) > 0 || staticcapacity.NeedsChange(s) != (launches > 0) {
			t.Errorf("%s old: %d launches, want %d; %d removals; needs a change %t; short %v", age, len(p.Launches), launches,
				len(p.Removals), staticcapacity.NeedsChange(s), p.Short)
		}
		s.Pools[0].Replicas = 1
		if p := staticcapacity.NextPlan(s, types, math.MaxInt); launches > 0 && len(p.Removals) > 0 {
			t.Errorf("%s old: %v goes for one that never came", age, p.Removals)
		}
	}
}
