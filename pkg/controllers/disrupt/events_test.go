package disrupt_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// heard are the reasons of the events on objects of the kind, each once, sorted.
func heard(w *fake.World, kind string, among ...string) []string {
	var out []string
	for _, e := range w.Events(kind) {
		for _, reason := range among {
			if strings.Contains(e, reason+": ") && !slices.Contains(out, reason) {
				out = append(out, reason)
			}
		}
	}
	slices.Sort(out)
	return out
}

// A consolidation is told from its proposal on: to the node that goes, to the replacement, and to both by what policy.
func TestAConsolidationIsTold(t *testing.T) {
	for _, c := range []struct {
		policy        string
		claims, nodes []string
	}{
		{"WhenEmptyOrUnderutilized",
			[]string{"ConsolidationCandidate", "DisruptionLaunching", "DisruptionTerminating", "DisruptionWaitingReadiness"},
			[]string{"ConsolidationCandidate", "DisruptionLaunching", "DisruptionTerminating"}},
		{"Balanced",
			[]string{"ConsolidationApproved", "ConsolidationCandidate", "DisruptionLaunching", "DisruptionTerminating", "DisruptionWaitingReadiness"},
			[]string{"ConsolidationApproved", "ConsolidationCandidate", "DisruptionLaunching", "DisruptionTerminating"}},
	} {
		f := controllertest.FreeToDisrupt(t, c.policy, 0)
		w := f.World
		w.RunApp("big", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(7000, 3000)))
		w.RunApp("small", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(300, 300)))
		f.Rest(t, 4)
		w.StopApp("big")
		w.Advance(time.Second)
		f.Consolidate(t, 12)
		controllertest.NoProblems(t, w)
		all := []string{"ConsolidationApproved", "ConsolidationCandidate", "ConsolidationRejected", "DisruptionFailed", "DisruptionLaunching", "DisruptionTerminating", "DisruptionWaitingReadiness"}
		if got := heard(w, "NodeClaim", all...); !slices.Equal(got, c.claims) {
			t.Errorf("%s: on claims %q, want %q", c.policy, got, c.claims)
		}
		if got := heard(w, "Node", all...); !slices.Equal(got, c.nodes) {
			t.Errorf("%s: on nodes %q, want %q", c.policy, got, c.nodes)
		}
		if got := controllertest.EventsWith(w.Events("NodeClaim"), "ConsolidationCandidate"); len(got) != 1 || !strings.Contains(got[0], "saves 0.1246 USD/h") {
			t.Errorf("%s: the proposal is told %d times, or without what it saves: %q", c.policy, len(got), got)
		}
		if got := controllertest.EventsWith(w.Events("NodeClaim"), "DisruptionLaunching: it replaces others: Underutilized"); len(got) != 1 {
			t.Errorf("%s: the replacement does not say what for: %q", c.policy, w.Events("NodeClaim"))
		}
	}
}

// A proposal that does not hold says on its nodes why they stay, whether that shows when it is confirmed or just before
// the taint.
func TestAConsolidationThatIsRejectedIsTold(t *testing.T) {
	for _, late := range []bool{false, true} {
		f := controllertest.FreeToDisrupt(t, "WhenEmptyOrUnderutilized", 2)
		w := f.World
		w.ScaleApp("web", 1)
		w.Advance(time.Second)
		change := func() { w.RunApp("other", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(500, 500))) }
		pass := func(before func(string)) {
			t.Helper()
			p := w.Ports(fake.Fault{})
			p.Before = before
			if err := f.Disrupt(p).Run(t.Context(), f.Once()); err != nil {
				t.Fatal(err)
			}
			w.Advance(20 * time.Second)
		}
		pass(nil)
		if !late {
			w.ChangePool(func(p *cluster.Pool) { p.Disruption.Policy = "WhenEmpty" })
		}
		reads := 0
		pass(func(call string) {
			if call == "read snapshot" {
				if reads++; reads == 2 && late {
					change()
				}
			}
		})
		want := "its NodePool consolidates empty nodes only"
		if late {
			want = "its pods are others by now"
		}
		for _, kind := range []string{"NodeClaim", "Node"} {
			if told := controllertest.EventsWith(w.Events(kind), "ConsolidationRejected: it stays: "); len(told) != 1 || !strings.Contains(told[0], want) {
				t.Errorf("late %t: on the %s %q, want one with %q", late, kind, told, want)
			}
		}
	}
}

// Who protects a node for a time says until when, and that it is over.
func TestProtectionForATimeIsTold(t *testing.T) {
	f := controllertest.FreeToDisrupt(t, "WhenEmptyOrUnderutilized", 0)
	w := f.World
	pod := controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000))
	pod.DoNotDisrupt = "30m"
	w.RunApp("job", 1, pod)
	f.Rest(t, 4)
	pass := func() {
		t.Helper()
		if err := f.Disrupt(w.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	pass()
	until := slices.Compact(controllertest.EventsWith(w.Events("Pod"), "DoNotDisruptUntil: karpenter.sh/do-not-disrupt=30m keeps its node until "))
	if len(until) != 1 || len(controllertest.EventsWith(w.Events("Pod"), "DoNotDisruptGracePeriodElapsed")) > 0 {
		t.Fatalf("%q, want one until when", w.Events("Pod"))
	}
	w.Advance(31 * time.Minute)
	pass()
	w.Advance(10 * time.Minute)
	pass()
	if got := controllertest.EventsWith(w.Events("Pod"), "DoNotDisruptGracePeriodElapsed: "); len(got) != 1 || !strings.HasSuffix(got[0], until[0][len(until[0])-len("2026-01-01T12:00:00Z"):]) {
		t.Errorf("%q, want once that it is over, with the time of %q", got, until)
	}
}

// In report mode nodes say what would become of them, and are counted.
func TestReportsAreToldOnNodes(t *testing.T) {
	f := controllertest.FreeToDisrupt(t, "WhenEmptyOrUnderutilized", 2)
	w := f.World
	w.ChangePool(func(p *cluster.Pool) { p.Disruption.ReportOnly = true })
	w.ScaleApp("web", 1)
	w.Advance(time.Second)
	got, said := &controllertest.MetricLines{}, &bytes.Buffer{}
	for range 3 {
		c := f.Disrupt(w.Ports(fake.Fault{}))
		c.Metrics, c.Log = got, slog.New(slog.NewTextHandler(said, nil))
		if err := c.Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		w.Advance(20 * time.Second)
	}
	for _, kind := range []string{"NodeClaim", "Node"} {
		if told := controllertest.EventsWith(w.Events(kind), "DisruptionReported: it is only reported: Underutilized: "); len(told) != 1 {
			t.Errorf("on the %s %q, want one report", kind, w.Events(kind))
		}
	}
	if node := " node=" + w.Nodes() + " nodepool=general reason=reported\n"; strings.Count(said.String(), node) != 1 {
		t.Errorf("not one line of the log with%s in: %s", node, said.String())
	}
	if n := strings.Count(strings.Join(got.All, "\n"), `"joiner_disruption_ineligible_nodes":1,"reason":"reported"`); n != 3 {
		t.Errorf("counted in %d of 3 passes: %s", n, got.All)
	}
}
