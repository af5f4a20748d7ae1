package disrupt_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// A proposal of an empty node that a pod came to, and one whose node changed between the decision and the taint, count
// as failed validations; what is begun counts by decision and reason, and what may go by reason.
func TestWhatDisruptMeasures(t *testing.T) {
	f := controllertest.FreeToDisrupt(t, "WhenEmpty", 1)
	w := f.World
	w.ScaleApp("web", 0)
	w.Advance(time.Second)
	pass := func() string {
		got := &controllertest.MetricLines{}
		c := f.Disrupt(w.Ports(fake.Fault{}))
		c.Metrics = got
		if err := c.Run(context.Background(), f.Once()); err != nil {
			t.Fatal(err)
		}
		return strings.Join(got.All, "\n")
	}
	has := func(text string, want bool, parts ...string) {
		t.Helper()
		for _, p := range parts {
			if strings.Contains(text, p) != want {
				t.Errorf("%s in the metrics: not %t\n%s", p, want, text)
			}
		}
	}
	const failed = `"karpenter_voluntary_disruption_failed_validations_total":1`
	has(pass(), true, `"karpenter_voluntary_disruption_eligible_nodes":1,"reason":"empty"`)
	w.RunApp("other", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000)))
	w.Advance(20 * time.Second)
	has(pass(), true, failed, `"karpenter_voluntary_disruption_eligible_nodes":0,"reason":"empty"`)
	w.StopApp("other")
	w.Advance(20 * time.Second)
	has(pass(), false, failed)
	w.Advance(20 * time.Second)
	const begun = `"decision":"delete","karpenter_voluntary_disruption_decisions_total":1,"reason":"empty"`
	has(pass(), true, begun)
}

// A node that goes because its pool sleeps counts under a reason of its own: CloudWatch takes no dimension without a
// value.
func TestNodesOfASleepingPoolAreCounted(t *testing.T) {
	f := controllertest.FreeToDisrupt(t, "WhenEmpty", 1)
	f.World.ChangePool(func(p *cluster.Pool) { p.Disruption.SleepAt, p.Disruption.SleepFor = "0 0 * * *", 24*time.Hour })
	got := &controllertest.MetricLines{}
	c := f.Disrupt(f.World.Ports(fake.Fault{}))
	c.Metrics = got
	if err := c.Run(t.Context(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(got.All, "\n"); !strings.Contains(all, `"karpenter_nodeclaims_disrupted_total":1,"reason":"sleep"`) {
		t.Errorf("no line with the reason: %s", all)
	}
}

// A pod that the scheduler binds after the decision and before the taint stops the act, and nothing is left of it. It
// is found by the snapshot that is read for the act alone.
func TestAPodThatComesBeforeTheTaintStopsTheAct(t *testing.T) {
	f := controllertest.FreeToDisrupt(t, "WhenEmpty", 1)
	w := f.World
	w.StopApp("web")
	pass := func(p *fake.Ports) []string {
		t.Helper()
		got := &controllertest.MetricLines{}
		c := f.Disrupt(p)
		c.Metrics = got
		if err := c.Run(context.Background(), f.Once()); err != nil {
			t.Fatal(err)
		}
		return got.All
	}
	pass(w.Ports(fake.Fault{}))
	w.Advance(20 * time.Second)
	p := w.Ports(fake.Fault{})
	reads := 0
	p.Before = func(call string) {
		if call == "read snapshot" {
			reads++
		}
		if call == "read snapshot" && reads == 2 {
			w.RunApp("late", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(100, 100)))
		}
	}
	all := strings.Join(pass(p), "\n")
	if reads != 2 || !strings.Contains(all, `"karpenter_voluntary_disruption_failed_validations_total":1`) {
		t.Errorf("%d snapshots were read, want 2, and the failure is not counted: %s", reads, all)
	}
	if c := controllertest.FirstChange(p.Calls()); c != "" {
		t.Errorf("it still makes the call %s", c)
	}
	f.Rest(t, 2)
	controllertest.NoProblems(t, w)
	if n := len(w.Claims()); n != 1 {
		t.Errorf("%d nodes, want the one with the pod", n)
	}
}
