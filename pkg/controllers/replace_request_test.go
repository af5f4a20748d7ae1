package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/events"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers/notices"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// TestRecommendationReplacesFirst follows a node from the recommendation on: it is marked for deletion only when
// another one is in service, which was not bought where EC2 is short, and the other node of the pool is left alone.
func TestRecommendationReplacesFirst(t *testing.T) {
	f := controllertest.Aged(t)
	was := f.World.Instances()
	n := interruption.Notice{Kind: interruption.Rebalance, Instance: was[0].ID, Time: f.World.Now()}
	controllertest.HandleNotices(t, f, n)
	for range 15 {
		f.Rest(t, 1)
		old := controllertest.ClaimOf(f, n.Instance)
		if old.Name == "" {
			break
		}
		if !old.Deleting.IsZero() && !slices.ContainsFunc(f.World.Claims(), func(c cluster.Claim) bool {
			return c.Created.After(old.Created.Add(time.Minute)) && c.Is("Initialized")
		}) {
			t.Fatal("the node was marked for deletion without a replacement in service")
		}
	}
	controllertest.NoProblems(t, f.World)
	now := f.World.Instances()
	if len(now) < len(was) || now[0].ID != was[1].ID || now[1].ID != was[2].ID {
		t.Fatalf("instances were %v and are %v", was, now)
	}
	for _, fresh := range now[2:] {
		if fresh.CapacityType == was[0].CapacityType && fresh.Type == was[0].Type && fresh.Zone == was[0].Zone {
			t.Errorf("the replacement is %s %s in %s again", fresh.CapacityType, fresh.Type, fresh.Zone)
		}
	}
	fresh := now[2]
	// A recommendation for the replacement follows at once: it is told, and that is all.
	controllertest.HandleNotices(t, f, interruption.Notice{Kind: interruption.Rebalance, Instance: fresh.ID, Time: f.World.Now()})
	f.Rest(t, 5)
	if got := f.World.Instances(); len(got) != len(now) || got[2].ID != fresh.ID {
		t.Errorf("instances are %v after a recommendation for the replacement", got)
	}
}

// TestSecondRecommendationChangesNothing compares what the cluster holds.
func TestSecondRecommendationChangesNothing(t *testing.T) {
	f := controllertest.Aged(t)
	n := interruption.Notice{Kind: interruption.Rebalance, Instance: controllertest.FirstInstance(f), Time: f.World.Now()}
	controllertest.HandleNotices(t, f, n)
	before := imageOf(f)
	controllertest.HandleNotices(t, f, n)
	controllertest.HandleNotices(t, f, n, n)
	if after := imageOf(f); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// imageOf returns what a wrong reaction would change.
func imageOf(f *controllertest.Functions) string {
	var b strings.Builder
	for _, c := range f.World.Claims() {
		fmt.Fprintln(&b, c.Name, c.Version, c.Deleting.IsZero(), f.World.TaintsOf(c.NodeName))
	}
	for _, m := range f.World.MarkedOfferings() {
		fmt.Fprintln(&b, m)
	}
	for _, i := range f.World.Instances() {
		fmt.Fprintln(&b, i.ID, i.State)
	}
	return b.String() + f.World.DescribeLeftovers()
}

func TestRecommendationsByChoiceAndQuota(t *testing.T) {
	for name, c := range map[string]struct {
		choice string
		quota  int
		left   int // nodes that are to be left
		told   int
	}{
		"ignore": {"ignore", 5, 0, 0}, "event": {"event", 5, 0, 3}, "the stack's": {"", 5, 0, 3}, "nonsense": {"later", 5, 0, 3},
		"replace": {"replace", 5, 3, 3}, "replace two an hour": {"replace", 2, 2, 3},
	} {
		f := controllertest.Aged(t)
		f.World.Quota = c.quota
		f.World.AnnotatePool(api.AnnotationRebalance, c.choice)
		told := len(f.World.Events("NodeClaim"))
		for _, i := range f.World.Instances() {
			controllertest.HandleNotices(t, f, interruption.Notice{Kind: interruption.Rebalance, Instance: i.ID, Time: f.World.Now()})
		}
		left := 0
		for _, claim := range f.World.Claims() {
			if claim.Annotations[api.AnnotationReplaceRequested] != "" {
				left++
			}
		}
		if left != c.left || len(f.World.MarkedOfferings()) != c.left || len(f.World.Events("NodeClaim"))-told != c.told {
			t.Errorf("%s: %d to be left, marks %v, %d events; want %d, as many, %d", name, left, f.World.MarkedOfferings(),
				len(f.World.Events("NodeClaim"))-told, c.left, c.told)
		}
	}
}

// TestRecommendationIsGivenUp: where nothing else can be bought the node stays as it is, and its pods with it.
func TestRecommendationIsGivenUp(t *testing.T) {
	f := controllertest.Aged(t)
	was := f.World.DescribeLeftovers()
	n := interruption.Notice{Kind: interruption.Rebalance, Instance: controllertest.FirstInstance(f), Time: f.World.Now()}
	controllertest.HandleNotices(t, f, n)
	f.World.BreakClass("nothing can be launched")
	f.Rest(t, 50) // 20 seconds and more each
	c := controllertest.ClaimOf(f, n.Instance)
	if !c.Deleting.IsZero() || c.Name == "" || f.World.DescribeLeftovers() != was || slices.Contains(f.World.TaintsOf(c.NodeName), "karpenter.sh/disrupted:NoSchedule") {
		t.Errorf("left are %s, were %s; claim %+v", f.World.DescribeLeftovers(), was, c)
	}
	for _, e := range f.World.Events("Pod") {
		if strings.HasPrefix(e, "FailedScheduling") {
			t.Errorf("a pod that runs was told: %s", e)
		}
	}
	p := f.World.Ports(fake.Fault{})
	if err := f.Provision(p).Run(context.Background(), f.Once()); err != nil || slices.Contains(p.Calls(), "read snapshot") {
		t.Errorf("provision still looks: %v, %v", p.Calls(), err)
	}
}

// TestRecommendationLeavesDeletedNodeAlone: the function has no right to change nodes, and lifecycle taints a node
// whose claim goes.
func TestRecommendationLeavesDeletedNodeAlone(t *testing.T) {
	f := controllertest.Aged(t)
	n := interruption.Notice{Kind: interruption.Rebalance, Instance: controllertest.FirstInstance(f), Time: f.World.Now()}
	f.World.DeleteClaims()
	controllertest.HandleNotices(t, f, n)
	if c := controllertest.ClaimOf(f, n.Instance); c.Deleting.IsZero() || slices.Contains(f.World.TaintsOf(c.NodeName), "karpenter.sh/disrupted:NoSchedule") {
		t.Errorf("the node has the taints %v; claim %+v", f.World.TaintsOf(c.NodeName), c)
	}
}

// TestScheduledChangeWaitsForBudgetsAndThenNot: an hour before the date the node goes, closed budgets or not, and its
// pods are gone in time although they are protected.
func TestScheduledChangeWaitsForBudgetsAndThenNot(t *testing.T) {
	f := controllertest.Aged(t)
	f.World.ChangePool(func(p *cluster.Pool) {
		p.Disruption.Budgets = []cluster.NodeBudget{{Every: true, Nodes: "0"}}
	})
	date := f.World.Now().Add(2 * time.Hour)
	n := interruption.Notice{Kind: interruption.Scheduled, Instance: controllertest.FirstInstance(f), Time: f.World.Now(), At: date}
	f.World.ScheduleChange(n.Instance, date) // EC2's status says so too, or the date would be taken back
	controllertest.HandleNotices(t, f, n)
	f.Rest(t, 20)
	if c := controllertest.ClaimOf(f, n.Instance); c.Name == "" || !c.Deleting.IsZero() {
		t.Fatal("the node goes although budgets are closed")
	}
	f.World.Advance(date.Add(-time.Hour).Sub(f.World.Now()))
	f.Rest(t, 6)
	f.ComeToRest(t)
	if c := controllertest.ClaimOf(f, n.Instance); c.Name != "" || !f.World.Now().Before(date) {
		t.Errorf("at %s, of %s, claim %q is still there", f.World.Now(), date, c.Name)
	}
}

// TestProtectedPodsLeaveAnInterruptedNodeInTime: whatever protects a pod, it gets its grace period and ends before its
// instance.
func TestProtectedPodsLeaveAnInterruptedNodeInTime(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	pod := controllertest.PodOf(1500, 3000)
	pod.DoNotDisrupt, pod.GraceSec = "true", 20
	f.World.RunApp("web", 1, pod)
	f.Rest(t, 4)
	controllertest.NoProblems(t, f.World)
	f.World.ProtectApp("web", 1) // allows no eviction either
	sent := f.World.Now()
	controllertest.HandleNotices(t, f, interruption.Notice{Kind: interruption.Spot, Instance: controllertest.FirstInstance(f), Time: sent})
	home := f.World.Nodes()
	var ended time.Time
	for f.World.Now().Before(sent.Add(2*time.Minute)) && ended.IsZero() {
		if err := f.Provision(f.World.Ports(fake.Fault{})).Run(context.Background(), f.Once()); err != nil {
			t.Fatal(err)
		}
		p := f.World.Ports(fake.Fault{})
		p.Before = func(call string) {
			if call == "terminate" && ended.IsZero() {
				ended = f.World.Now()
			}
		}
		if err := f.Lifecycle(p).Run(context.Background(), f.World.Now().Add(3*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if at := ended.Sub(sent); ended.IsZero() || at < 90*time.Second || at > 2*time.Minute {
		t.Errorf("the node of %s was drained after %s, want close to two minutes", home, ended.Sub(sent))
	}
	f.Rest(t, 6)
	for _, p := range f.World.ListProblems() {
		if !strings.HasPrefix(p, "budget web was broken") { // it had to be
			t.Error(p)
		}
	}
}

// TestForeignInstancesCostOneCall: what is known not to be ours is not asked for again, unless it may be a launch in
// flight.
func TestForeignInstancesCostOneCall(t *testing.T) {
	f := controllertest.RunningPods(t)
	p := f.World.Ports(fake.Fault{})
	c := f.Interruption(p)
	c.Foreign = &notices.ForeignInstances{}
	event := []byte(`{"source":"aws.ec2","detail-type":"EC2 Instance State-change Notification","detail":{"instance-id":"i-0123456789abcdef0","state":"running"}}`)
	handle := func() {
		t.Helper()
		if err := c.Handle(context.Background(), "state-change", event); err != nil {
			t.Fatal(err)
		}
	}
	handle()
	handle()
	if got := strings.Join(p.Calls(), ", "); got != "list claims" {
		t.Errorf("calls %s", got)
	}
	f.World.SkipTime(61 * time.Minute)
	handle()
	if got := strings.Join(p.Calls(), ", "); got != "list claims, list claims" {
		t.Errorf("calls %s an hour later", got)
	}
	// With a claim that has no instance yet nothing is certain.
	f.World.RunApp("more", 1, controllertest.PodOf(1500, 3000))
	launch := slices.Index(callsOf(t, f), "launch") + 1
	_ = f.Provision(f.World.Ports(fake.Fault{Call: launch, Fatal: true})).Run(context.Background(), f.Once())
	event = []byte(strings.Replace(string(event), "def0", "def1", 1))
	handle()
	handle()
	if got := strings.Join(p.Calls()[2:], ", "); got != "list claims, wake provision, list claims, wake provision" {
		t.Errorf("calls %s while something is launched", got)
	}
}

// TestWhatConcernsNobodyCostsNoCall: what is over, about another region, or about no instance.
func TestWhatConcernsNobodyCostsNoCall(t *testing.T) {
	sample, err := events.KindScheduledChange.Sample()
	if err != nil {
		t.Fatal(err)
	}
	for old, now := range map[string]string{`"upcoming"`: `"closed"`, `"eventRegion": "us-west-2"`: `"eventRegion": "eu-central-1"`, `"entityValue": "i-`: `"entityValue": "h-`} {
		f := controllertest.RunningPods(t)
		p := f.World.Ports(fake.Fault{})
		c := f.Interruption(p)
		c.Place = notices.Location{Account: "111122223333", Region: "us-west-2"}
		event := strings.ReplaceAll(string(sample), old, now)
		if err := c.Handle(context.Background(), events.KindScheduledChange, []byte(event)); err != nil || len(p.Calls()) != 0 || event == string(sample) {
			t.Errorf("%s: calls %v, error %v", now, p.Calls(), err)
		}
		// A copy of the event that another region delivers counts.
		event = strings.Replace(string(sample), `"region": "us-west-2"`, `"region": "us-east-1"`, 1)
		if err := c.Handle(context.Background(), events.KindScheduledChange, []byte(event)); err != nil || len(p.Calls()) != 1 {
			t.Errorf("a copy: calls %v, error %v", p.Calls(), err)
		}
	}
}

// callsOf are the calls of a pass of provision in a world like this one.
func callsOf(t *testing.T, _ *controllertest.Functions) []string {
	t.Helper()
	dry := controllertest.RunningPods(t)
	dry.World.RunApp("more", 1, controllertest.PodOf(1500, 3000))
	p := dry.World.Ports(fake.Fault{})
	if err := dry.Provision(p).Run(context.Background(), dry.Once()); err != nil {
		t.Fatal(err)
	}
	return p.Calls()
}

// TestNoticesAboutClaimsThatChange: somebody else writes the claim between the read and the write, once and for ever.
func TestNoticesAboutClaimsThatChange(t *testing.T) {
	for _, times := range []int{1, 100} {
		f := controllertest.RunningPods(t)
		n := controllertest.SpotNotice(f.World)
		p := f.World.Ports(fake.Fault{})
		p.Before = func(call string) {
			if call != "annotate claim" || times == 0 {
				return
			}
			times--
			c := controllertest.ClaimOf(f, n.Instance)
			if _, err := f.World.Ports(fake.Fault{}).LabelClaim(context.Background(), c, map[string]string{"turn": fmt.Sprint(times)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		err := f.Interruption(p).HandleNotices(context.Background(), n)
		if gaveUp := err != nil; gaveUp != (times > 0) {
			t.Errorf("error %v with %d changes to come", err, times)
		}
		if times > 0 && 100-times != 4 {
			t.Errorf("it was tried %d times", 100-times)
		}
	}
}

// TestANodeOfTheSameNameIsLeftAlone: the address of an instance that ended is used again before its last notice is
// handled.
func TestANodeOfTheSameNameIsLeftAlone(t *testing.T) {
	for _, kind := range []interruption.Kind{interruption.Spot, interruption.Stopping, interruption.Ended} {
		f := controllertest.RunningPods(t)
		n := interruption.Notice{Kind: kind, Instance: controllertest.FirstInstance(f), Time: f.World.Now()}
		name := controllertest.ClaimOf(f, n.Instance).NodeName
		f.World.ReuseNode(name, "aws:///us-west-2a/i-0fedcba9876543210")
		p := f.World.Ports(fake.Fault{})
		if err := f.Interruption(p).HandleNotices(context.Background(), n); err != nil {
			t.Fatal(err)
		}
		for _, call := range p.Calls() {
			if strings.Contains(call, "pod") || call == "taint node for termination" || call == "delete node" || call == "release node" {
				t.Errorf("%s: %s, although the node is another instance's", kind, call)
			}
		}
	}
}
