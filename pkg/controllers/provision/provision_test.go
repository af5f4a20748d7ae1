package provision_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

func count(calls []string, call string) (n int) {
	for _, c := range calls {
		if c == call {
			n++
		}
	}
	return n
}

func TestPodsGetNodes(t *testing.T) {
	f := controllertest.RunningPods(t)
	if got, want := f.World.DescribeLeftovers(), "3 claims, 3 nodes, 3 instances, 4 pods"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, i := range f.World.Instances() {
		if i.CapacityType != instancetypes.Spot {
			t.Errorf("%s is %s", i.ID, i.CapacityType)
		}
	}
}

func TestNothingToDoCostsThreeReads(t *testing.T) {
	w := controllertest.NewWorld()
	p, err := controllertest.InvokeProvision(t, w, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Calls(), ", "); got != "list pending pods, list claims, list static pools" {
		t.Errorf("calls: %s", got)
	}
	if !w.Now().Equal(controllertest.Noon()) {
		t.Error("it waited")
	}
}

func TestUnplacedPodsAreToldAndNotWaitedFor(t *testing.T) {
	w := controllertest.NewWorld()
	w.RunApp("giant", 1, controllertest.PodOf(500000, 1000))
	p, err := controllertest.InvokeProvision(t, w, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if !w.Now().Equal(controllertest.Noon()) || slices.Contains(p.Calls(), "wait") {
		t.Error("it waited")
	}
	events := w.Events("Pod")
	if len(events) != 1 || !strings.HasPrefix(events[0], "FailedScheduling: ") || !strings.Contains(events[0], "cpu") {
		t.Errorf("events %q", events)
	}
	if len(w.Claims()) != 0 {
		t.Errorf("claims %v", w.Claims())
	}
}

func TestUnavailableOfferingIsFollowedByTheNext(t *testing.T) {
	w := controllertest.NewWorld()
	w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	var asked []instancetypes.OfferingKey
	w.Refuse = func(o instancetypes.OfferingKey) bool {
		asked = append(asked, o)
		return len(asked) == 1
	}
	if _, err := controllertest.InvokeProvision(t, w, 0); err != nil {
		t.Fatal(err)
	}
	if len(w.Instances()) != 1 || len(asked) != 2 {
		t.Fatalf("%d instances after asking for %v", len(w.Instances()), asked)
	}
	if i := w.Instances()[0]; (instancetypes.OfferingKey{CapacityType: i.CapacityType, Type: i.Type, Zone: i.Zone}) != asked[1] {
		t.Errorf("%+v is not %s", i, asked[1])
	}
	if marks := w.MarkedOfferings(); len(marks) != 1 || marks[0] != asked[0] {
		t.Errorf("marked %v", marks)
	}
}

// TestWholeOrderUnavailableIsFollowedByAnother refuses everything that the first request asks for.
func TestWholeOrderUnavailableIsFollowedByAnother(t *testing.T) {
	w := controllertest.NewWorld()
	w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	w.Refuse = func(o instancetypes.OfferingKey) bool { return o.CapacityType == instancetypes.Spot }
	p, err := controllertest.InvokeProvision(t, w, 0) // one pass, one claim
	if err != nil {
		t.Fatal(err)
	}
	if n := len(w.Instances()); n != 1 {
		t.Fatalf("%d instances; calls %v", n, p.Calls())
	}
	if i := w.Instances()[0]; i.CapacityType != instancetypes.OnDemand {
		t.Errorf("spot is unavailable and %s is %s", i.ID, i.CapacityType)
	}
	if n := count(p.Calls(), "create claim"); n != 1 {
		t.Errorf("%d claims were created", n)
	}
	if n := count(p.Calls(), "launch"); n != 2 {
		t.Errorf("%d launches", n)
	}
	f := controllertest.Functions{World: w}
	f.Rest(t, 4)
	controllertest.NoProblems(t, w)
}

func TestClaimWithoutCapacityIsGivenUpAndItsPodsPackedAnew(t *testing.T) {
	w := controllertest.NewWorld()
	w.ChangePool(controllertest.CapacityType(instancetypes.Spot))
	w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	refused := true
	w.Refuse = func(instancetypes.OfferingKey) bool { return refused }
	p, err := controllertest.InvokeProvision(t, w, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(w.Instances()); n != 0 {
		t.Fatalf("%d instances", n)
	}
	for _, c := range w.Claims() {
		if c.Deleting.IsZero() {
			t.Errorf("claim %s is kept", c.Name)
		}
	}
	if events := w.Events("NodeClaim"); len(events) != 1 || !strings.HasPrefix(events[0], "InsufficientCapacityError: ") {
		t.Errorf("events %q; calls %v", events, p.Calls())
	}
	if events := w.Events("Pod"); len(events) == 0 || !strings.Contains(events[0], "InsufficientInstanceCapacity") {
		t.Errorf("events on the pod %q", events)
	}
	refused = false
	w.Advance(4 * time.Minute) // the marks run out
	f := controllertest.Functions{World: w}
	f.Rest(t, 5)
	controllertest.NoProblems(t, w)
}

func TestClassThatIsNotReadyLaunchesNothing(t *testing.T) {
	w := controllertest.NewWorld()
	w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	w.BreakClass("no subnet matches")
	if _, err := controllertest.InvokeProvision(t, w, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if len(w.Claims()) != 0 || len(w.Instances()) != 0 {
		t.Errorf("left are %s", w.DescribeLeftovers())
	}
	if events := w.Events("Pod"); len(events) == 0 || !strings.Contains(events[0], "no subnet matches") {
		t.Errorf("events %q", events)
	}
}

// TestClassThatBreaksUnderAClaim has the claim stored when the class turns unusable.
func TestClassThatBreaksUnderAClaim(t *testing.T) {
	w := controllertest.NewWorld()
	w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	w.FailLaunch = func(launch.Order) error { return errors.New("throttled") }
	if _, err := controllertest.InvokeProvision(t, w, 0); err == nil {
		t.Fatal("no error")
	}
	if len(w.Claims()) != 1 {
		t.Fatalf("left are %s", w.DescribeLeftovers())
	}
	w.FailLaunch = nil
	w.BreakClass("no subnet matches")
	if _, err := controllertest.InvokeProvision(t, w, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if c := w.Claims()[0]; c.Deleting.IsZero() {
		t.Error("the claim was kept")
	}
	if events := w.Events("NodeClaim"); len(events) != 1 || !strings.HasPrefix(events[0], "NodeClassNotReady: ") || !strings.Contains(events[0], "no subnet matches") {
		t.Errorf("events %q", events)
	}
	if events := w.Events("Pod"); len(events) == 0 || !strings.Contains(events[0], "no subnet matches") {
		t.Errorf("events on the pod %q", events)
	}
}

// TestOneFailedLaunchStopsNoOther lets one of two launches fail for another reason than capacity, pass after pass.
func TestOneFailedLaunchStopsNoOther(t *testing.T) {
	w := controllertest.NewWorld()
	free := controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000))
	w.RunApp("tied", 1, controllertest.InZone("us-west-2a", controllertest.PodOf(1500, 3000)))
	w.RunApp("free", 1, free)
	w.FailLaunch = func(o launch.Order) error {
		if o.Offerings()[0].Zone == "us-west-2a" {
			return errors.New("InvalidParameter: no such thing")
		}
		return nil
	}
	_, err := controllertest.InvokeProvision(t, w, 0)
	if err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("error %v", err)
	}
	if i := w.Instances(); len(i) != 1 || i[0].Zone != "us-west-2b" {
		t.Fatalf("instances %+v", i)
	}
	told := false
	for _, c := range w.Claims() {
		k := c.Condition("Launched")
		told = told || k.Status == "Unknown" && k.Reason == "LaunchFailed" && strings.Contains(k.Message, "no such thing")
	}
	if !told {
		t.Errorf("no claim says why: %+v", w.Claims())
	}
	// A pod that comes later is served too while the claim goes on failing.
	w.RunApp("late", 1, free)
	_, err = controllertest.InvokeProvision(t, w, 0)
	if err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("error %v", err)
	}
	if n := len(w.Instances()); n != 2 {
		t.Errorf("%d instances while one claim fails: the late pod waits for it", n)
	}
}

func TestLeaseOfAnotherCreatesNothing(t *testing.T) {
	w := controllertest.NewWorld()
	w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	other := w.Ports(fake.Fault{})
	release, ok, err := other.Acquire(context.Background(), "joiner-capacity", "somebody", time.Hour)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, err := controllertest.InvokeProvision(t, w, 3*time.Second); err != nil {
		t.Fatal(err)
	}
	if got := w.DescribeLeftovers(); got != "0 claims, 0 nodes, 0 instances, 1 pods" {
		t.Errorf("left are %s", got)
	}
	if err := release(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := controllertest.InvokeProvision(t, w, 0); err != nil {
		t.Fatal(err)
	}
	if n := len(w.Instances()); n != 1 {
		t.Errorf("%d instances once the lease is free", n)
	}
}

// TestTokenOfAnotherOrderAdopts lets the answer of a launch be lost; by the next pass prices moved and the order is
// another.
func TestTokenOfAnotherOrderAdopts(t *testing.T) {
	for _, c := range []struct {
		name    string
		end     bool // the instance that nobody heard of is gone again
		started int
	}{
		{"the instance lives", false, 1},
		{"the instance is gone", true, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := controllertest.NewWorld()
			w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
			f := controllertest.Functions{World: w}
			dry := controllertest.NewWorld()
			dry.RunApp("web", 1, controllertest.PodOf(1500, 3000))
			p, err := controllertest.InvokeProvision(t, dry, 0)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.Index(p.Calls(), "launch") + 1
			if err := f.Provision(w.Ports(fake.Fault{Call: at, Lost: true, Fatal: true})).Run(context.Background(), f.Once()); err == nil {
				t.Fatal("no error")
			}
			first := w.Instances()[0]
			if c.end {
				w.InterruptInstance(first.ID)
			}
			unavailable := w.Ports(fake.Fault{})
			mark := instancetypes.UnavailableOffering{OfferingKey: instancetypes.OfferingKey{CapacityType: first.CapacityType, Type: first.Type, Zone: first.Zone}, Why: "gone"}
			if err := unavailable.MarkUnavailable(context.Background(), []instancetypes.UnavailableOffering{mark}, time.Hour); err != nil {
				t.Fatal(err)
			}
			w.Advance(2 * time.Minute)
			if _, err := controllertest.InvokeProvision(t, w, 0); err != nil {
				t.Fatal(err)
			}
			if len(w.Claims()) != 1 || len(w.Instances()) != 1 {
				t.Fatalf("left are %s", w.DescribeLeftovers())
			}
			now := w.Instances()[0]
			if adopted := now.ID == first.ID; adopted == c.end {
				t.Errorf("first %s, now %s", first.ID, now.ID)
			}
			if got := w.Claims()[0].InstanceID(); got != now.ID {
				t.Errorf("the claim has %s, not %s", got, now.ID)
			}
			f.Rest(t, 5)
			controllertest.NoProblems(t, w)
		})
	}
}

// TestLaunchedClaimIsNotGivenUp loses the reply of a launch, after which everything is marked as unavailable.
func TestLaunchedClaimIsNotGivenUp(t *testing.T) {
	w := controllertest.NewWorld()
	w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	f := controllertest.Functions{World: w}
	dry := controllertest.NewWorld()
	dry.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	p, err := controllertest.InvokeProvision(t, dry, 0)
	if err != nil {
		t.Fatal(err)
	}
	lost := fake.Fault{Call: slices.Index(p.Calls(), "launch") + 1, Lost: true, Fatal: true}
	if err := f.Provision(w.Ports(lost)).Run(context.Background(), f.Once()); err == nil {
		t.Fatal("no error")
	}
	var all []instancetypes.UnavailableOffering
	for _, capacityType := range []string{instancetypes.Spot, instancetypes.OnDemand} {
		all = append(all, instancetypes.UnavailableOffering{OfferingKey: instancetypes.OfferingKey{CapacityType: capacityType}, Why: "gone"})
	}
	if err := w.Ports(fake.Fault{}).MarkUnavailable(context.Background(), all, time.Hour); err != nil {
		t.Fatal(err)
	}
	w.Advance(30 * time.Second)
	if _, err := controllertest.InvokeProvision(t, w, 0); err != nil {
		t.Fatal(err)
	}
	if len(w.Claims()) != 1 || len(w.Instances()) != 1 || !w.Claims()[0].Deleting.IsZero() {
		t.Fatalf("left are %s: %v", w.DescribeLeftovers(), w.Claims())
	}
	f.Rest(t, 4)
	controllertest.NoProblems(t, w)
}

// TestLimitsHoldWithinAPass wants the pool's limit to bound what one pass launches.
func TestLimitsHoldWithinAPass(t *testing.T) {
	w := controllertest.NewWorld()
	w.ChangePool(func(p *cluster.Pool) {
		p.Requirements = p.Requirements.And(requirements.Of("node.kubernetes.io/instance-type", "m5.large"))
		p.Limits, p.Limited = p.Limits.With("nodes", 2), []string{"nodes"}
	})
	w.RunApp("web", 5, controllertest.PodOf(1500, 3000))
	if _, err := controllertest.InvokeProvision(t, w, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if n := len(w.Instances()); n != 2 {
		t.Errorf("%d instances for a limit of 2 nodes", n)
	}
}
