package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/cli/explain"
	"joiner.sh/pkg/cli/status"
	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/whatif"
)

// source is a cluster with a node of pool general, a pod on it, one that needs a node and one that gets none.
func source(t *testing.T) (explain.Source, binpack.Offerings) {
	t.Helper()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	class := instancetypes.DefaultClass(c)
	needs := requirements.NewSet(requirements.Of(instancetypes.LabelType, "m5.large", "m5.xlarge", "c5.large"), requirements.Of(instancetypes.LabelCapacityType, "on-demand"),
		requirements.Of(instancetypes.LabelZone, "us-west-2a"))
	labels := map[string]string{instancetypes.LabelType: "m5.xlarge", instancetypes.LabelCapacityType: "on-demand", instancetypes.LabelZone: "us-west-2a",
		v1.LabelNodePool: "general", v1.LabelRegistered: "true", v1.LabelInitialized: "true"}
	has := resources.List{CPU: 3920, Memory: 14 << 30, Pods: 58}
	pod := func(name string, cpu int64, node string) cluster.Pod {
		p := cluster.Pod{Namespace: "shop", Name: name, UID: name, Created: now.Add(-time.Minute), Phase: "Pending", Unscheduled: node == "", NodeName: node,
			Owner: cluster.OwnerOther, Need: resources.List{CPU: cpu, Memory: 1 << 30, Pods: 1}}
		if node != "" {
			p.Phase = "Running"
		}
		return p
	}
	gated := pod("gated", 100, "")
	gated.Unscheduled = false
	s := cluster.Snapshot{Now: now, Catalog: c, Classes: []instancetypes.Class{class},
		Pools: []cluster.Pool{{Name: "general", Class: "default", Ready: true, Requirements: needs, Limits: resources.List{CPU: 20000}.With("joiner.sh/usd-per-hour", 500_000), Limited: []string{"cpu", "joiner.sh/usd-per-hour"},
			Counted: resources.List{CPU: 4000}, Disruption: cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "1"}}}},
			{Name: "unready", Class: "none", Message: "EC2NodeClass none does not exist"}},
		Nodes: []cluster.Node{{Name: "n1", ProviderID: "aws:///us-west-2a/i-1", Created: now.Add(-2 * time.Hour), Labels: labels, Capacity: has, Allocatable: has, Ready: true}},
		Claims: []cluster.Claim{{Name: "general-abc", UID: "u", Pool: "general", Class: "default", Created: now.Add(-2 * time.Hour), ProviderID: "aws:///us-west-2a/i-1", NodeName: "n1",
			Requirements: needs, Requests: resources.List{CPU: 500, Memory: 1 << 30, Pods: 1}, Capacity: has, Allocatable: has,
			Conditions: []cluster.Condition{{Type: "Launched", Status: "True"}, {Type: "Registered", Status: "True"}, {Type: "Initialized", Status: "True"},
				{Type: "Drained", Status: "False", Message: "not yet"}}}},
		Pods: []cluster.Pod{gated, pod("giant", 500_000, ""), pod("new", 3800, ""), pod("old", 500, "n1")},
	}
	sells := binpack.ResolveOfferings(s)
	record := func(minute int, change func(*decisionlog.Record)) decisionlog.Record {
		r := decisionlog.Record{Schema: 1, Time: now.Add(time.Duration(minute) * time.Minute)}
		change(&r)
		return r
	}
	giant := func(r *decisionlog.Record) {
		r.Unplaced = []decisionlog.Reason{{Why: "too big", Count: 1, Names: []string{"shop/giant"}}}
	}
	return explain.Source{Search: whatif.Limits{Work: -1}, Snapshot: s, View: status.ViewOf(s, disruption.Memory{}, sells), Records: []decisionlog.Record{
		record(-120, func(r *decisionlog.Record) {
			r.Launches = []decisionlog.Launch{{Pool: "general", Type: "m5.xlarge", Zone: "us-west-2a", CapacityType: "on-demand", HourlyUSD: 0.192, Pods: 3, Names: []string{"shop/old"}}}
		}),
		record(-3, giant), record(-2, giant),
		record(-1, func(r *decisionlog.Record) {
			r.Removals = []decisionlog.DisruptionStage{{Stage: "propose", Reason: "Underutilized", Claims: []string{"general-abc"}, SavesUSD: 0.1, Replaces: []string{"spot m5.large in us-west-2a"}}}
			r.NotDisrupted = []decisionlog.Reason{{Why: "a pod must stay", Names: []string{"n1"}}}
			r.Skipped = []decisionlog.Reason{{Why: "not ready", Names: []string{"unready"}}}
		}),
	}}, sells
}

func said(a explain.Answer, err error) string {
	if err != nil {
		return err.Error()
	}
	return strings.Join(append(append([]string{a.Subject + ": " + a.Verdict}, a.Why...), a.Past...), "\n")
}

func TestAnswers(t *testing.T) {
	s, sells := source(t)
	for _, c := range []struct{ got, want string }{
		{said(explain.ExplainPod(s, "shop/old", sells)), `pod shop/old: it is on node n1: on-demand m5.xlarge in us-west-2a at 0.1942 USD/h, 2h old
it asks for cpu=500m memory=1024Mi pods=1
2026-11-22T10:00:00Z a node for it and 2 others: on-demand m5.xlarge in us-west-2a from pool general at 0.1920 USD/h`},
		{said(explain.ExplainPod(s, "shop/gated", sells)), "pod shop/gated: no node is made for it: the scheduler has not said yet that no node can take it (a scheduling gate, or it was made just now)"},
		{said(explain.ExplainPod(s, "shop/new", sells)), `pod shop/new: the next pass launches a node for it: on-demand m5.xlarge in us-west-2a from pool general at 0.1942 USD/h, 0.0022 of it for volumes and addresses
the node is for 1 pods, which ask for cpu=3800m memory=1024Mi pods=1 with its daemons; 1 types are possible`},
		{said(explain.ExplainPod(s, "default/new", sells)), "there is no pod default/new; there is shop/new"},
		{said(explain.ExplainNode(s, "general-abc", sells)), `node n1: it is ready: on-demand m5.xlarge in us-west-2a at 0.1942 USD/h, 2h old
1 pods are on it; they ask for 13% of its cpu and 7% of its memory
its NodeClaim general-abc of pool general asks for cpu=500m memory=1024Mi pods=1; 3 offerings that it may be can be had now
cheaper at the prices of now: on-demand c5.large in us-west-2a at 0.0872, on-demand m5.large in us-west-2a at 0.0982; EC2 chose among what it had, or prices have changed
its condition Drained is False: not yet`},
		{said(explain.ExplainNode(s, "n", sells)), "there is no node n; there is n1"},
		{said(explain.ExplainPool(s, "unready", sells)), "nodepool unready: nothing is launched from it: EC2NodeClass none does not exist"},
	} {
		if !strings.HasPrefix(c.got, c.want) {
			t.Errorf("%s", cmp.Diff(strings.Split(c.want, "\n"), strings.Split(c.got, "\n")))
		}
	}
	for _, c := range []struct{ got, want string }{
		{said(explain.ExplainPod(s, "shop/giant", sells)), "no instance type is big enough for cpu=500"},
		{said(explain.ExplainPod(s, "shop/giant", sells)), "2026-11-22T11:57:00Z unschedulable: too big (2 times)"},
		{said(explain.ExplainNode(s, "n1", sells)), "2026-11-22T11:59:00Z propose Underutilized, saves 0.1000 USD/h, for spot m5.large in us-west-2a"},
		{said(explain.ExplainNode(s, "n1", sells)), "2026-11-22T11:59:00Z not disrupted: a pod must stay"},
		{said(explain.ExplainNode(s, "n1", sells)), "2026-11-22T10:00:00Z launched from pool general for 3 pods, shop/old among them, at 0.1920 USD/h; 0 types were possible"},
		{said(explain.ExplainNode(s, "n1", sells)), "\nUSD per hour: instance 0.1920, volumes 0.0022\ndisruption "},
		{said(explain.ExplainPool(s, "general", sells)), "nodepool general: it is ready\nit has 1 nodes for 0.1942 USD/h with 1 pods"},
		{said(explain.ExplainPool(s, "general", sells)), "\nUSD per hour: instance 0.1920, volumes 0.0022\nlimit cpu: 4 of 20 used"},
		{said(explain.ExplainPool(s, "general", sells)), "limit on the price: 0.1942 of 0.5000 USD/h used"},
		{said(explain.ExplainPool(s, "general", sells)), "disruption Underutilized: its budgets let 1 more nodes go now"},
		{said(explain.ExplainPool(s, "general", sells)), "1 pods that wait cannot use it: "},
		{said(explain.ExplainPool(s, "general", sells)), "2026-11-22T10:00:00Z 1 launches for 0.1920 USD/h"},
		{said(explain.ExplainPool(s, "unready", sells)), "2026-11-22T11:59:00Z took no part: not ready"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("want %q in\n%s", c.want, c.got)
		}
	}
}

// A pod that has ended says so, whether a snapshot has it or only the API server, and with what node it had.
func TestAPodThatHasEnded(t *testing.T) {
	s, sells := source(t)
	for i := range s.Snapshot.Pods {
		if p := &s.Snapshot.Pods[i]; p.Name == "old" {
			p.Phase = "Succeeded"
		}
	}
	for _, c := range []struct {
		pod, want string
		asked     explain.PodState
	}{
		{"shop/old", "pod shop/old: it has ended (Succeeded), on node n1, where it takes no room any more\n2026-", explain.PodState{}},
		{"shop/old", "pod shop/old: it has ended (Succeeded, Done), on node n1,", explain.PodState{Phase: "Succeeded", Cause: "Done"}},
		{"shop/gone", "pod shop/gone: it has ended (Failed, Evicted), on node n7,", explain.PodState{Phase: "Failed", Cause: "Evicted", NodeName: "n7"}},
		{"shop/gone", "pod shop/gone: it has ended (Failed), without a node", explain.PodState{Phase: "Failed"}},
		{"shop/gone", "there is no pod shop/gone", explain.PodState{Phase: "Running", NodeName: "n7"}},
	} {
		s.Asked = c.asked
		if got := said(explain.ExplainPod(s, c.pod, sells)); !strings.HasPrefix(got, c.want) {
			t.Errorf("want %q, got\n%s", c.want, got)
		}
	}
}

// What a pod requires of its node is told, and that no node is made for a resize.
func TestWhatAPodRequires(t *testing.T) {
	s, sells := source(t)
	for i := range s.Snapshot.Pods {
		s.Snapshot.Pods[i].Requires = []string{"CSI driver x", "feature F"}
	}
	s.Asked.Resize = "Deferred (no room)"
	got := said(explain.ExplainPod(s, "shop/old", sells))
	for _, want := range []string{"its node must have CSI driver x, feature F", "its resize is Deferred (no room); no node is made for a resize, but another pod in its stead gets one that is large enough"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	if got := said(explain.ExplainPod(s, "shop/new", sells)); !strings.Contains(got, "its nodes are without feature F") {
		t.Errorf("a pod that waits for a feature that nobody knows:\n%s", got)
	}
}

// Another scheduler than the default one is named, and only that.
func TestAPodOfAnotherScheduler(t *testing.T) {
	s, sells := source(t)
	const says = "its schedulerName is "
	for scheduler, want := range map[string]string{"volcano": says + "volcano: that scheduler decides where it goes", "default-scheduler": "", "": ""} {
		s.Asked.Scheduler = scheduler
		for _, pod := range []string{"shop/gated", "shop/giant", "shop/new"} {
			got := said(explain.ExplainPod(s, pod, sells))
			if !strings.Contains(got, want) || want == "" && strings.Contains(got, says) {
				t.Errorf("%s of %q: want %q in\n%s", pod, scheduler, want, got)
			}
		}
	}
	s.Asked = explain.PodState{Scheduler: "fargate-scheduler", Fargate: true}
	const fargate = "pod shop/gated: no node is made for it: AWS Fargate runs it"
	if got := said(explain.ExplainPod(s, "shop/gated", sells)); !strings.HasPrefix(got, fargate) || strings.Contains(got, says) {
		t.Errorf("want %q in\n%s", fargate, got)
	}
}

func TestAPoolThatSleeps(t *testing.T) {
	s, sells := source(t)
	s.Snapshot.Pools[0].Disruption.SleepAt, s.Snapshot.Pools[0].Disruption.SleepFor = "0 6 * * *", 8*time.Hour
	if got := said(explain.ExplainPool(s, "general", sells)); !strings.HasPrefix(got, `nodepool general: it sleeps, for 8h0m0s from each "0 6 * * *" on`) {
		t.Error(got)
	}
}

// A pool says what keeps its nodes from being disrupted beside its budgets.
func TestAPoolThatIsNotDisrupted(t *testing.T) {
	for _, c := range []struct {
		disruption cluster.Disruption
		want       string
	}{
		{cluster.Disruption{ReportOnly: true}, "\ndisruption of its nodes is only reported"},
		{cluster.Disruption{ReportOnly: true, Message: "budget 1: no"}, "\nno node of it is disrupted by choice until this is mended: budget 1: no"},
	} {
		s, sells := source(t)
		if got := said(explain.ExplainPool(s, "general", sells)); strings.Contains(got, c.want) {
			t.Errorf("said without need: %s", got)
		}
		s.Snapshot.Pools[0].Disruption = c.disruption
		s.Snapshot.Pools[0].Disruption.Budgets = []cluster.NodeBudget{{Every: true, Nodes: "many"}}
		got := said(explain.ExplainPool(s, "general", sells))
		if !strings.Contains(got, c.want) {
			t.Errorf("%s\nlacks %q", got, c.want)
		}
		if again := strings.Contains(got, "its budgets cannot be understood"); again != (c.disruption.Message == "") {
			t.Errorf("what is wrong with its budgets is said twice, or not at all:\n%s", got)
		}
	}
}

// A pod without a node is told what would give it one; with no work for that nothing is asked, and one that has a node
// or gets one needs nothing.
func TestWhatWouldHelpAPod(t *testing.T) {
	s, sells := source(t)
	s.Search = whatif.Limits{Work: 8_000}
	for i := range s.Snapshot.Pods {
		if p := &s.Snapshot.Pods[i]; p.Name == "giant" {
			p.Need.CPU, p.NodeSelector = 500, map[string]string{instancetypes.LabelZone: "us-west-2b"}
		}
	}
	a, err := explain.ExplainPod(s, "shop/giant", sells)
	if err != nil || a.WhatIf == nil || len(a.WhatIf.Changes) != 2 {
		t.Fatalf("%v, %+v", err, a)
	}
	for _, c := range a.WhatIf.Changes {
		if said := c.String(); !strings.Contains(said, "us-west-2b") || !strings.Contains(said, "USD/h") && !strings.Contains(said, "room on node n1") {
			t.Error(said)
		}
	}
	for _, name := range []string{"shop/old", "shop/new"} {
		if a, err := explain.ExplainPod(s, name, sells); err != nil || a.WhatIf != nil {
			t.Errorf("%s: %v, %+v", name, err, a.WhatIf)
		}
	}
	s.Search.Work = -1
	if a, err := explain.ExplainPod(s, "shop/giant", sells); err != nil || a.WhatIf != nil {
		t.Errorf("without work: %v, %+v", err, a.WhatIf)
	}
}
