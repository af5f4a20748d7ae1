package controllers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/metrics"
	"joiner/pkg/nodeclaim/interruption"
	"joiner/pkg/testing/fake"
)

// lines keeps the lines of metrics without their heads.
type lines struct{ all []string }

func (l *lines) Put(records ...metrics.Record) {
	for _, r := range records {
		text, err := metrics.EMFLines(noon(), "demo", r)
		if err != nil {
			panic(err)
		}
		for _, t := range text {
			_, after, _ := strings.Cut(string(t), "]}]},")
			l.all = append(l.all, after)
		}
	}
}

func TestWhatProvisionAndLifecycleMeasure(t *testing.T) {
	w := newWorld()
	f := &functions{w: w}
	w.Run("web", 2, pattern(900, 512))
	w.Run("giant", 1, pattern(900_000, 512))
	w.Tick(30 * time.Second)

	pass := func() []string {
		got := &lines{}
		p := f.provision(w.Ports(fake.Fault{}))
		p.Metrics = got
		if err := p.Run(t.Context(), f.once()); err != nil {
			t.Fatal(err)
		}
		return got.all
	}
	want := []string{`"cluster":"demo","karpenter_nodeclaims_created_total":1,"karpenter_pods_provisioning_unbound_time_seconds":30,` +
		`"karpenter_pods_scheduling_decision_duration_seconds":[30,30],"karpenter_scheduler_unschedulable_pods_count":1}`}
	if diff := cmp.Diff(want, pass()); diff != "" {
		t.Errorf("a launch (-want +got):\n%s", diff)
	}
	w.Stop("giant")
	w.Tick(time.Minute)
	want = []string{`"cluster":"demo","karpenter_pods_provisioning_unbound_time_seconds":0,"karpenter_scheduler_unschedulable_pods_count":0}`}
	if diff := cmp.Diff(want, pass()); diff != "" {
		t.Errorf("nothing to do (-want +got):\n%s", diff)
	}

	w.Stop("web")
	w.DeleteClaims()
	got := &lines{}
	for range 6 {
		l := f.lifecycle(w.Ports(fake.Fault{}))
		l.Metrics = got
		if err := l.Run(t.Context(), f.once()); err != nil {
			t.Fatal(err)
		}
		w.Tick(20 * time.Second)
	}
	if diff := cmp.Diff([]string{`"cluster":"demo","karpenter_nodeclaims_terminated_total":1}`}, got.all); diff != "" {
		t.Errorf("an ended claim (-want +got):\n%s", diff)
	}
}

func TestNoticesAreMeasured(t *testing.T) {
	w := newWorld()
	f := &functions{w: w}
	w.Run("web", 1, pattern(900, 512))
	f.rest(t, 2)
	got := &lines{}
	i := f.interruption(w.Ports(fake.Fault{}))
	i.Metrics = got
	at := w.Now()
	w.Tick(40 * time.Second)
	id := w.Instances()[0].ID
	if err := i.HandleNotices(t.Context(), interruption.Notice{Kind: interruption.Spot, Instance: id, Time: at}, interruption.Notice{Kind: interruption.Spot, Instance: "i-0foreign", Time: at}); err != nil {
		t.Fatal(err)
	}
	want := []string{`"cluster":"demo","joiner_notices_total":1,"karpenter_nodeclaims_disrupted_total":1,"reason":"spot_interrupted"}`, `"cluster":"demo","joiner_notice_handled_seconds":40}`}
	if diff := cmp.Diff(want, got.all); diff != "" {
		t.Errorf("a notice (-want +got):\n%s", diff)
	}
	// The same once more condemns nothing, and a state is no notice.
	for kind, want := range map[interruption.Kind][]string{
		interruption.Scheduled: {`"cluster":"demo","joiner_notices_total":1,"reason":"scheduled_change"}`}, interruption.Running: nil, interruption.Ending: nil,
	} {
		got.all = nil
		if err := i.HandleNotices(t.Context(), interruption.Notice{Kind: kind, Instance: id, Time: at}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.all); diff != "" {
			t.Errorf("%s of a claim that is being deleted (-want +got):\n%s", kind, diff)
		}
	}
}

// A claim for which nothing can be bought, and one that is left on a recommendation, count as well.
func TestClaimsThatProvisionDeletesAreCounted(t *testing.T) {
	counted := func(f *functions, rounds int) string {
		got := &lines{}
		for range rounds {
			p := f.provision(f.w.Ports(fake.Fault{}))
			p.Metrics = got
			if err := p.Run(t.Context(), f.once()); err != nil {
				t.Fatal(err)
			}
			f.rest(t, 1)
		}
		return strings.Join(got.all, "\n")
	}
	sold := &functions{w: newWorld()}
	sold.w.Run("web", 1, pattern(1500, 3000))
	sold.w.Refuse = func(instancetypes.Offer) bool { return true }
	if got := counted(sold, 1); !strings.Contains(got, `_disrupted_total":1,"reason":"insufficient_capacity"`) {
		t.Errorf("sold out: %s", got)
	}
	f := aged(t)
	again(t, f, interruption.Notice{Kind: interruption.Rebalance, Instance: first(f), Time: f.w.Now()})
	if got := counted(f, 15); !strings.Contains(got, `_disrupted_total":1,"reason":"rebalance_recommendation"`) {
		t.Errorf("recommended: %s", got)
	}
}

// A claim that a state ends counts under the reason that Karpenter has for it.
func TestInstancesThatEndAreCounted(t *testing.T) {
	for kind, reason := range map[interruption.Kind]string{interruption.Stopping: "instance_stopped", interruption.Stopped: "instance_stopped",
		interruption.Ending: "instance_terminated", interruption.Ended: "instance_terminated"} {
		f := running(t)
		got := &lines{}
		i := f.interruption(f.w.Ports(fake.Fault{}))
		i.Metrics = got
		if err := i.HandleNotices(t.Context(), interruption.Notice{Kind: kind, Instance: first(f), Time: f.w.Now()}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{`"cluster":"demo","karpenter_nodeclaims_disrupted_total":1,"reason":"` + reason + `"}`}, got.all); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

// Pods that only wait for a NodePool to wake are counted apart, and ring nothing.
func TestPodsOfSleepingPoolsAreCountedApart(t *testing.T) {
	w := newWorld()
	f := &functions{w: w}
	w.Run("web", 2, pattern(900, 512))
	w.Run("giant", 1, pattern(900_000, 512))
	w.Tick(30 * time.Second)
	w.ChangePool(func(p *cluster.Pool) { p.Disruption.SleepAt, p.Disruption.SleepFor = "@hourly", time.Hour })
	p := f.provision(w.Ports(fake.Fault{}))
	got := &lines{}
	p.Metrics = got
	if err := p.Run(t.Context(), f.once()); err != nil {
		t.Fatal(err)
	}
	want := []string{`"cluster":"demo","joiner_pods_asleep_count":2,"karpenter_pods_provisioning_unbound_time_seconds":30,"karpenter_scheduler_unschedulable_pods_count":1}`}
	if diff := cmp.Diff(want, got.all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
