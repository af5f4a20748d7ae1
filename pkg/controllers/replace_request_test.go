package controllers_test

import (
	"context"
	"fmt"
	api "joiner/pkg/api/v1"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner/events"
	"joiner/pkg/controllers"
	"joiner/pkg/model/cluster"
	"joiner/pkg/nodeclaim/interruption"
	"joiner/pkg/testing/fake"
)

// TestRecommendationReplacesFirst follows a node from the recommendation on: it is condemned only when another one is
// in service, which was not bought where EC2 is short, and the other node of the pool is left alone.
func TestRecommendationReplacesFirst(t *testing.T) {
	f := aged(t)
	was := f.w.Instances()
	n := interruption.Notice{Kind: interruption.Rebalance, Instance: was[0].ID, Time: f.w.Now()}
	again(t, f, n)
	for range 15 {
		f.rest(t, 1)
		old := claimOf(f, n.Instance)
		if old.Name == "" {
			break
		}
		if !old.Deleting.IsZero() && !slices.ContainsFunc(f.w.Claims(), func(c cluster.Claim) bool {
			return c.Created.After(old.Created.Add(time.Minute)) && c.Is("Initialized")
		}) {
			t.Fatal("the node was condemned without a replacement in service")
		}
	}
	noProblems(t, f.w)
	now := f.w.Instances()
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
	again(t, f, interruption.Notice{Kind: interruption.Rebalance, Instance: fresh.ID, Time: f.w.Now()})
	f.rest(t, 5)
	if got := f.w.Instances(); len(got) != len(now) || got[2].ID != fresh.ID {
		t.Errorf("instances are %v after a recommendation for the replacement", got)
	}
}

// TestSecondRecommendationChangesNothing compares what the cluster holds.
func TestSecondRecommendationChangesNothing(t *testing.T) {
	f := aged(t)
	n := interruption.Notice{Kind: interruption.Rebalance, Instance: first(f), Time: f.w.Now()}
	again(t, f, n)
	before := f.image()
	again(t, f, n)
	again(t, f, n, n)
	if after := f.image(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// image is what a wrong reaction would change.
func (f *functions) image() string {
	var b strings.Builder
	for _, c := range f.w.Claims() {
		fmt.Fprintln(&b, c.Name, c.Version, c.Deleting.IsZero(), f.w.Taints(c.NodeName))
	}
	for _, m := range f.w.Marks() {
		fmt.Fprintln(&b, m)
	}
	for _, i := range f.w.Instances() {
		fmt.Fprintln(&b, i.ID, i.State)
	}
	return b.String() + f.w.Left()
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
		f := aged(t)
		f.w.Quota = c.quota
		f.w.AnnotatePool(api.AnnotationRebalance, c.choice)
		told := len(f.w.Events("NodeClaim"))
		for _, i := range f.w.Instances() {
			again(t, f, interruption.Notice{Kind: interruption.Rebalance, Instance: i.ID, Time: f.w.Now()})
		}
		left := 0
		for _, claim := range f.w.Claims() {
			if claim.Annotations[api.AnnotationReplaceRequested] != "" {
				left++
			}
		}
		if left != c.left || len(f.w.Marks()) != c.left || len(f.w.Events("NodeClaim"))-told != c.told {
			t.Errorf("%s: %d to be left, marks %v, %d events; want %d, as many, %d", name, left, f.w.Marks(),
				len(f.w.Events("NodeClaim"))-told, c.left, c.told)
		}
	}
}

// TestRecommendationIsGivenUp: where nothing else can be bought the node stays as it is, and its pods with it.
func TestRecommendationIsGivenUp(t *testing.T) {
	f := aged(t)
	was := f.w.Left()
	n := interruption.Notice{Kind: interruption.Rebalance, Instance: first(f), Time: f.w.Now()}
	again(t, f, n)
	f.w.BreakClass("nothing can be launched")
	f.rest(t, 50) // 20 seconds and more each
	c := claimOf(f, n.Instance)
	if !c.Deleting.IsZero() || c.Name == "" || f.w.Left() != was || slices.Contains(f.w.Taints(c.NodeName), "karpenter.sh/disrupted:NoSchedule") {
		t.Errorf("left are %s, were %s; claim %+v", f.w.Left(), was, c)
	}
	for _, e := range f.w.Events("Pod") {
		if strings.HasPrefix(e, "FailedScheduling") {
			t.Errorf("a pod that runs was told: %s", e)
		}
	}
	p := f.w.Ports(fake.Fault{})
	if err := f.provision(p).Run(context.Background(), f.once()); err != nil || slices.Contains(p.Calls(), "read snapshot") {
		t.Errorf("provision still looks: %v, %v", p.Calls(), err)
	}
}

// TestRecommendationLeavesDeletedNodeAlone: the function has no right to change nodes, and lifecycle taints a node
// whose claim goes.
func TestRecommendationLeavesDeletedNodeAlone(t *testing.T) {
	f := aged(t)
	n := interruption.Notice{Kind: interruption.Rebalance, Instance: first(f), Time: f.w.Now()}
	f.w.DeleteClaims()
	again(t, f, n)
	if c := claimOf(f, n.Instance); c.Deleting.IsZero() || slices.Contains(f.w.Taints(c.NodeName), "karpenter.sh/disrupted:NoSchedule") {
		t.Errorf("the node has the taints %v; claim %+v", f.w.Taints(c.NodeName), c)
	}
}

// TestScheduledChangeWaitsForBudgetsAndThenNot: an hour before the date the node goes, closed budgets or not, and its
// pods are gone in time although they are protected.
func TestScheduledChangeWaitsForBudgetsAndThenNot(t *testing.T) {
	f := aged(t)
	f.w.ChangePool(func(p *cluster.Pool) {
		p.Disruption.Budgets = []cluster.NodeBudget{{Every: true, Nodes: "0"}}
	})
	date := f.w.Now().Add(2 * time.Hour)
	n := interruption.Notice{Kind: interruption.Scheduled, Instance: first(f), Time: f.w.Now(), At: date}
	again(t, f, n)
	f.rest(t, 20)
	if c := claimOf(f, n.Instance); c.Name == "" || !c.Deleting.IsZero() {
		t.Fatal("the node goes although budgets are closed")
	}
	f.w.Tick(date.Add(-time.Hour).Sub(f.w.Now()))
	f.rest(t, 6)
	f.comeToRest(t)
	if c := claimOf(f, n.Instance); c.Name != "" || !f.w.Now().Before(date) {
		t.Errorf("at %s, of %s, claim %q is still there", f.w.Now(), date, c.Name)
	}
}

// TestProtectedPodsLeaveAnInterruptedNodeInTime: whatever protects a pod, it gets its grace period and ends before its
// instance.
func TestProtectedPodsLeaveAnInterruptedNodeInTime(t *testing.T) {
	f := &functions{w: newWorld()}
	pod := pattern(1500, 3000)
	pod.DoNotDisrupt, pod.GraceSec = "true", 20
	f.w.Run("web", 1, pod)
	f.rest(t, 4)
	noProblems(t, f.w)
	f.w.Protect("web", 1) // allows no eviction either
	sent := f.w.Now()
	again(t, f, interruption.Notice{Kind: interruption.Spot, Instance: first(f), Time: sent})
	home := f.w.Nodes()
	var ended time.Time
	for f.w.Now().Before(sent.Add(2*time.Minute)) && ended.IsZero() {
		if err := f.provision(f.w.Ports(fake.Fault{})).Run(context.Background(), f.once()); err != nil {
			t.Fatal(err)
		}
		p := f.w.Ports(fake.Fault{})
		p.Before = func(call string) {
			if call == "terminate" && ended.IsZero() {
				ended = f.w.Now()
			}
		}
		if err := f.lifecycle(p).Run(context.Background(), f.w.Now().Add(3*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if at := ended.Sub(sent); ended.IsZero() || at < 90*time.Second || at > 2*time.Minute {
		t.Errorf("the node of %s was drained after %s, want close to two minutes", home, ended.Sub(sent))
	}
	f.rest(t, 6)
	for _, p := range f.w.Problems() {
		if !strings.HasPrefix(p, "budget web was broken") { // it had to be
			t.Error(p)
		}
	}
}

// TestForeignInstancesCostOneCall: what is known not to be ours is not asked for again, unless it may be a launch in
// flight.
func TestForeignInstancesCostOneCall(t *testing.T) {
	f := running(t)
	p := f.w.Ports(fake.Fault{})
	i := f.interruption(p)
	i.Foreign = &controllers.ForeignInstances{}
	event := []byte(`{"source":"aws.ec2","detail-type":"EC2 Instance State-change Notification","detail":{"instance-id":"i-0123456789abcdef0","state":"running"}}`)
	handle := func() {
		t.Helper()
		if err := i.Handle(context.Background(), "state-change", event); err != nil {
			t.Fatal(err)
		}
	}
	handle()
	handle()
	if got := strings.Join(p.Calls(), ", "); got != "list claims" {
		t.Errorf("calls %s", got)
	}
	f.w.Skip(61 * time.Minute)
	handle()
	if got := strings.Join(p.Calls(), ", "); got != "list claims, list claims" {
		t.Errorf("calls %s an hour later", got)
	}
	// With a claim that has no instance yet nothing is certain.
	f.w.Run("more", 1, pattern(1500, 3000))
	launch := slices.Index(callsOf(t, f), "launch") + 1
	_ = f.provision(f.w.Ports(fake.Fault{Call: launch, Fatal: true})).Run(context.Background(), f.once())
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
		f := running(t)
		p := f.w.Ports(fake.Fault{})
		i := f.interruption(p)
		i.Place = controllers.Location{Account: "111122223333", Region: "us-west-2"}
		event := strings.ReplaceAll(string(sample), old, now)
		if err := i.Handle(context.Background(), events.KindScheduledChange, []byte(event)); err != nil || len(p.Calls()) != 0 || event == string(sample) {
			t.Errorf("%s: calls %v, error %v", now, p.Calls(), err)
		}
		// A copy of the event that another region delivers counts.
		event = strings.Replace(string(sample), `"region": "us-west-2"`, `"region": "us-east-1"`, 1)
		if err := i.Handle(context.Background(), events.KindScheduledChange, []byte(event)); err != nil || len(p.Calls()) != 1 {
			t.Errorf("a copy: calls %v, error %v", p.Calls(), err)
		}
	}
}

// callsOf are the calls of a pass of provision in a world like this one.
func callsOf(t *testing.T, _ *functions) []string {
	t.Helper()
	dry := running(t)
	dry.w.Run("more", 1, pattern(1500, 3000))
	p := dry.w.Ports(fake.Fault{})
	if err := dry.provision(p).Run(context.Background(), dry.once()); err != nil {
		t.Fatal(err)
	}
	return p.Calls()
}

// TestNoticesAboutClaimsThatChange: somebody else writes the claim between the read and the write, once and for ever.
func TestNoticesAboutClaimsThatChange(t *testing.T) {
	for _, times := range []int{1, 100} {
		f := running(t)
		n := notice(f.w)
		p := f.w.Ports(fake.Fault{})
		p.Before = func(call string) {
			if call != "annotate claim" || times == 0 {
				return
			}
			times--
			c := claimOf(f, n.Instance)
			if _, err := f.w.Ports(fake.Fault{}).LabelClaim(context.Background(), c, map[string]string{"turn": fmt.Sprint(times)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		err := f.interruption(p).HandleNotices(context.Background(), n)
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
		f := running(t)
		n := interruption.Notice{Kind: kind, Instance: first(f), Time: f.w.Now()}
		name := claimOf(f, n.Instance).NodeName
		f.w.ReuseNode(name, "aws:///us-west-2a/i-0fedcba9876543210")
		p := f.w.Ports(fake.Fault{})
		if err := f.interruption(p).HandleNotices(context.Background(), n); err != nil {
			t.Fatal(err)
		}
		for _, call := range p.Calls() {
			if strings.Contains(call, "pod") || call == "condemn node" || call == "delete node" || call == "release node" {
				t.Errorf("%s: %s, although the node is another instance's", kind, call)
			}
		}
	}
}
