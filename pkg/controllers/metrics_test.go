package controllers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

func TestWhatProvisionAndLifecycleMeasure(t *testing.T) {
	w := controllertest.NewWorld()
	f := &controllertest.Functions{World: w}
	w.RunApp("web", 2, controllertest.PodOf(900, 512))
	w.RunApp("giant", 1, controllertest.PodOf(900_000, 512))
	w.Advance(30 * time.Second)

	pass := func() []string {
		got := &controllertest.MetricLines{}
		c := f.Provision(w.Ports(fake.Fault{}))
		c.Metrics = got
		if err := c.Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		return got.All
	}
	want := []string{`"cluster":"demo","karpenter_nodeclaims_created_total":1,"karpenter_pods_provisioning_unbound_time_seconds":30,` +
		`"karpenter_pods_scheduling_decision_duration_seconds":[30,30],"karpenter_scheduler_unschedulable_pods_count":1}`}
	if diff := cmp.Diff(want, pass()); diff != "" {
		t.Errorf("a launch (-want +got):\n%s", diff)
	}
	w.StopApp("giant")
	w.Advance(time.Minute)
	want = []string{`"cluster":"demo","karpenter_pods_provisioning_unbound_time_seconds":0,"karpenter_scheduler_unschedulable_pods_count":0}`}
	if diff := cmp.Diff(want, pass()); diff != "" {
		t.Errorf("nothing to do (-want +got):\n%s", diff)
	}

	w.StopApp("web")
	w.DeleteClaims()
	got := &controllertest.MetricLines{}
	for range 6 {
		l := f.Lifecycle(w.Ports(fake.Fault{}))
		l.Metrics = got
		if err := l.Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		w.Advance(20 * time.Second)
	}
	if diff := cmp.Diff([]string{`"cluster":"demo","karpenter_nodeclaims_terminated_total":1}`}, got.All); diff != "" {
		t.Errorf("an ended claim (-want +got):\n%s", diff)
	}
}

func TestNoticesAreMeasured(t *testing.T) {
	w := controllertest.NewWorld()
	f := &controllertest.Functions{World: w}
	w.RunApp("web", 1, controllertest.PodOf(900, 512))
	f.Rest(t, 2)
	got := &controllertest.MetricLines{}
	c := f.Interruption(w.Ports(fake.Fault{}))
	c.Metrics = got
	at := w.Now()
	w.Advance(40 * time.Second)
	id := w.Instances()[0].ID
	if err := c.HandleNotices(t.Context(), interruption.Notice{Kind: interruption.Spot, Instance: id, Time: at}, interruption.Notice{Kind: interruption.Spot, Instance: "i-0foreign", Time: at}); err != nil {
		t.Fatal(err)
	}
	want := []string{`"cluster":"demo","joiner_notices_total":1,"karpenter_nodeclaims_disrupted_total":1,"reason":"spot_interrupted"}`, `"cluster":"demo","joiner_notice_handled_seconds":40}`}
	if diff := cmp.Diff(want, got.All); diff != "" {
		t.Errorf("a notice (-want +got):\n%s", diff)
	}
	// The same once more deletes nothing, and a state is no notice.
	for kind, want := range map[interruption.Kind][]string{
		interruption.Scheduled: {`"cluster":"demo","joiner_notices_total":1,"reason":"scheduled_change"}`}, interruption.Running: nil, interruption.Ending: nil,
	} {
		got.All = nil
		if err := c.HandleNotices(t.Context(), interruption.Notice{Kind: kind, Instance: id, Time: at}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.All); diff != "" {
			t.Errorf("%s of a claim that is being deleted (-want +got):\n%s", kind, diff)
		}
	}
}

// A pod that runs on a node that goes away does not wait for a decision, however old it is.
func TestAPodThatRunsDoesNotWaitForADecision(t *testing.T) {
	f := controllertest.Aged(t)
	controllertest.HandleNotices(t, f, interruption.Notice{Kind: interruption.Spot, Instance: controllertest.FirstInstance(f),
		Time: f.World.Now()})
	got := &controllertest.MetricLines{}
	c := f.Provision(f.World.Ports(fake.Fault{}))
	c.Metrics = got
	if err := c.Run(t.Context(), f.Once()); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(got.All, "\n")
	if !strings.Contains(all, `"karpenter_nodeclaims_created_total":1`) || strings.Contains(all, "decision_duration") {
		t.Errorf("a node is replaced: %s", all)
	}
}

// A claim for which nothing can be bought, and one that is left on a recommendation, count as well.
func TestClaimsThatProvisionDeletesAreCounted(t *testing.T) {
	counted := func(f *controllertest.Functions, rounds int) string {
		got := &controllertest.MetricLines{}
		for range rounds {
			c := f.Provision(f.World.Ports(fake.Fault{}))
			c.Metrics = got
			if err := c.Run(t.Context(), f.Once()); err != nil {
				t.Fatal(err)
			}
			f.Rest(t, 1)
		}
		return strings.Join(got.All, "\n")
	}
	sold := &controllertest.Functions{World: controllertest.NewWorld()}
	sold.World.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	sold.World.Refuse = func(instancetypes.OfferingKey) bool { return true }
	if got := counted(sold, 1); !strings.Contains(got, `_disrupted_total":1,"reason":"insufficient_capacity"`) {
		t.Errorf("unavailable: %s", got)
	}
	f := controllertest.Aged(t)
	controllertest.HandleNotices(t, f, interruption.Notice{Kind: interruption.Rebalance, Instance: controllertest.FirstInstance(f), Time: f.World.Now()})
	if got := counted(f, 15); !strings.Contains(got, `_disrupted_total":1,"reason":"rebalance_recommendation"`) {
		t.Errorf("recommended: %s", got)
	}
}

// A claim that a state ends counts under the reason that Karpenter has for it.
func TestInstancesThatEndAreCounted(t *testing.T) {
	for kind, reason := range map[interruption.Kind]string{interruption.Stopping: "instance_stopped", interruption.Stopped: "instance_stopped",
		interruption.Ending: "instance_terminated", interruption.Ended: "instance_terminated"} {
		f := controllertest.RunningPods(t)
		got := &controllertest.MetricLines{}
		c := f.Interruption(f.World.Ports(fake.Fault{}))
		c.Metrics = got
		if err := c.HandleNotices(t.Context(), interruption.Notice{Kind: kind, Instance: controllertest.FirstInstance(f), Time: f.World.Now()}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{`"cluster":"demo","karpenter_nodeclaims_disrupted_total":1,"reason":"` + reason + `"}`}, got.All); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

// Pods that only wait for a NodePool to wake are counted apart, and ring nothing.
func TestPodsOfSleepingPoolsAreCountedApart(t *testing.T) {
	w := controllertest.NewWorld()
	f := &controllertest.Functions{World: w}
	w.RunApp("web", 2, controllertest.PodOf(900, 512))
	w.RunApp("giant", 1, controllertest.PodOf(900_000, 512))
	w.Advance(30 * time.Second)
	w.ChangePool(func(p *cluster.Pool) { p.Disruption.SleepAt, p.Disruption.SleepFor = "@hourly", time.Hour })
	c := f.Provision(w.Ports(fake.Fault{}))
	got := &controllertest.MetricLines{}
	c.Metrics = got
	if err := c.Run(t.Context(), f.Once()); err != nil {
		t.Fatal(err)
	}
	want := []string{`"cluster":"demo","joiner_pods_asleep_count":2,"karpenter_pods_provisioning_unbound_time_seconds":30,"karpenter_scheduler_unschedulable_pods_count":1}`}
	if diff := cmp.Diff(want, got.All); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
