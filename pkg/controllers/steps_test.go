package controllers_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/requirements"
	"joiner/pkg/model/resources"
	"joiner/pkg/testing/fake"
)

// byHand is a world with a claim that a user made, and with the pods of one pool.
func byHand(t *testing.T) *functions {
	t.Helper()
	f := &functions{w: newWorld()}
	f.w.AddClaim(cluster.Claim{Name: "mine", Labels: map[string]string{"team": "a"}, Requests: resources.List{CPU: 3000},
		Requirements: requirements.NewSet(requirements.Of(instancetypes.LabelCapacityType, "on-demand"), requirements.Of(instancetypes.LabelZone, "us-west-2b"))})
	return f
}

func mine(t *testing.T, w *fake.World) cluster.Claim {
	t.Helper()
	for _, c := range w.Claims() {
		if c.Name == "mine" {
			return c
		}
	}
	t.Fatal("the claim is gone")
	return cluster.Claim{}
}

// TestAHandMadeClaimGetsItsNode has no pods: nothing but the claim asks for a node.
func TestAHandMadeClaimGetsItsNode(t *testing.T) {
	f := byHand(t)
	f.rest(t, 4)
	noProblems(t, f.w)
	c := mine(t, f.w)
	if !c.Is("Initialized") || !c.Finalizer || c.Labels["karpenter.k8s.aws/ec2nodeclass"] != "default" || c.Labels["team"] != "a" {
		t.Errorf("the claim is %+v", c)
	}
	if i := f.w.Instances(); len(i) != 1 || i[0].CapacityType != "on-demand" || i[0].Zone != "us-west-2b" || i[0].Type != "c5.xlarge" {
		t.Errorf("instances %+v", i)
	}
	if got := f.w.Counted().Get("nodes"); got != 0 {
		t.Errorf("the pool counts %d nodes", got)
	}
	if got := f.w.Registrations("general"); len(got) != 0 {
		t.Errorf("the pool was told of %v", got)
	}
	f.w.DeleteClaims()
	f.rest(t, 3)
	if left := f.w.Left(); left != "0 claims, 0 nodes, 0 instances, 0 pods" {
		t.Errorf("left are %s", left)
	}
}

// TestNothingIsLaunchedBeforeTheFinalizerIsStored fails the write of the finalizer.
func TestNothingIsLaunchedBeforeTheFinalizerIsStored(t *testing.T) {
	dry := byHand(t)
	p := dry.w.Ports(fake.Fault{})
	if err := dry.provision(p).Run(context.Background(), dry.once()); err != nil {
		t.Fatal(err)
	}
	f := byHand(t)
	p = f.w.Ports(fake.Fault{Call: slices.Index(p.Calls(), "adopt claim") + 1})
	if err := f.provision(p).Run(context.Background(), f.once()); err == nil {
		t.Error("no error")
	}
	if slices.Contains(p.Calls(), "launch") {
		t.Errorf("calls %v", p.Calls())
	}
}

// TestALostFinalizerIsPutBack takes it off a claim in service.
func TestALostFinalizerIsPutBack(t *testing.T) {
	f := running(t)
	name := f.w.Claims()[0].Name
	f.w.Strip(name)
	f.rest(t, 1)
	if c := f.w.Claims()[0]; c.Name != name || !c.Finalizer {
		t.Errorf("claim %s has no finalizer", name)
	}
}

// TestPoolsCountAndRememberTheirNodes follows a pool from its first node to none.
func TestPoolsCountAndRememberTheirNodes(t *testing.T) {
	f := running(t)
	claims := len(f.w.Claims())
	if got := f.w.Counted(); got.Get("nodes") != int64(claims) || got.CPU == 0 || got.Memory == 0 {
		t.Errorf("%d claims are counted as %s", claims, got)
	}
	ok := 0
	for _, r := range f.w.Registrations("general") {
		if r.OK {
			ok++
		}
	}
	if ok != claims {
		t.Errorf("%d of %d registrations are remembered", ok, claims)
	}
	f.w.Stop("web")
	f.w.Stop("db")
	f.w.DeleteClaims()
	f.rest(t, 4)
	if got := f.w.Counted(); !got.IsZero() {
		t.Errorf("an empty pool is counted as %s", got)
	}
}

// TestOneThatFailsAllTheTimeHoldsUpNobody cannot end one instance; the other nodes are gone within the same invocation.
func TestOneThatFailsAllTheTimeHoldsUpNobody(t *testing.T) {
	f := running(t)
	f.w.Stop("web")
	f.w.Stop("db")
	bad, tries := f.w.Instances()[0].ID, 0
	f.w.FailEnd = func(id string) error {
		if id == bad {
			tries++
			return errors.New("UnauthorizedOperation")
		}
		return nil
	}
	all := len(f.w.Claims())
	f.w.DeleteClaims()
	err := f.lifecycle(f.w.Ports(fake.Fault{})).Run(context.Background(), f.w.Now().Add(50*time.Second))
	if err == nil || strings.Count(err.Error(), "UnauthorizedOperation") != 1 {
		t.Errorf("error %v, want that of the one step", err)
	}
	if left := f.w.Claims(); len(left) != 1 || instanceOf(left[0]) != bad || all < 2 {
		t.Errorf("%d of %d claims are left", len(left), all)
	}
	if tries < 4 || tries > 7 {
		t.Errorf("it was tried %d times in 50 seconds, want each time later", tries)
	}
}

// TestTellingIsNoReasonToStay has something to tell in each pass and nothing to do.
func TestTellingIsNoReasonToStay(t *testing.T) {
	f := &functions{w: newWorld(), repair: true}
	f.w.Run("web", 1, pattern(1500, 3000))
	f.w.Run("db", 1, inZone("us-west-2a", pattern(1500, 3000)))
	f.w.Run("cache", 1, inZone("us-west-2b", pattern(1500, 3000)))
	f.rest(t, 4)
	noProblems(t, f.w)
	f.w.Ail("StorageReady", "False")
	f.w.Tick(40 * time.Minute)
	p := f.w.Ports(fake.Fault{})
	if err := f.lifecycle(p).Run(context.Background(), f.w.Now().Add(50*time.Second)); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(p.Calls(), "wait") || !slices.Contains(p.Calls(), "write event") {
		t.Errorf("calls %v", p.Calls())
	}
	if len(f.w.Instances()) < 2 || !slices.ContainsFunc(f.w.Events("Node"), hasReason("NodeRepairBlocked")) {
		t.Errorf("%d instances, events on nodes %q", len(f.w.Instances()), f.w.Events("Node"))
	}
}

// TestNobodyStaysToWatchABlockedDrain has a budget that never lets the last pod of a node go: while that is news the
// functions stay, and then they come once a minute, see that nothing changed, and leave.
func TestNobodyStaysToWatchABlockedDrain(t *testing.T) {
	f := &functions{w: newWorld()}
	f.w.Run("web", 1, pattern(1500, 3000))
	f.rest(t, 4)
	f.w.Protect("web", 1)
	f.w.DeleteClaims()
	f.rest(t, 3)
	stay := func() (waits []bool) {
		t.Helper()
		l, p := f.w.Ports(fake.Fault{}), f.w.Ports(fake.Fault{})
		if err := f.lifecycle(l).Run(t.Context(), f.w.Now().Add(50*time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := f.provision(p).Run(t.Context(), f.w.Now().Add(50*time.Second)); err != nil {
			t.Fatal(err)
		}
		return []bool{slices.Contains(l.Calls(), "wait"), slices.Contains(p.Calls(), "wait")}
	}
	if got := stay(); !slices.Equal(got, []bool{true, true}) {
		t.Errorf("lifecycle and provision watch a new drain: %v", got)
	}
	f.w.Tick(5 * time.Minute)
	if got := stay(); !slices.Equal(got, []bool{false, false}) {
		t.Errorf("lifecycle and provision watch an old drain: %v", got)
	}
	f.w.Run("web", 1, pattern(1500, 3000))
	f.rest(t, 10)
	if slices.ContainsFunc(f.w.Claims(), func(c cluster.Claim) bool { return !c.Deleting.IsZero() }) {
		t.Errorf("the drain does not go on once the budget allows it")
	}
	if len(some(f.w.Events("Pod"), "Evicted: Evicted pod: Forceful Termination")) != 1 {
		t.Errorf("events on pods: %q", f.w.Events("Pod"))
	}
}

// only is the one instance of a world made by alone.
const only = "i-000004"

// singleRows is a world with one node, which has a pod and an attached volume.
func singleRows(t *testing.T, pod cluster.Pod) *functions {
	t.Helper()
	f := &functions{w: newWorld(), repair: true}
	f.w.Run("web", 1, pod)
	f.comeToRest(t)
	if i := f.w.Instances(); len(i) != 1 || i[0].ID != only {
		t.Fatalf("instances %+v", i)
	}
	f.w.Attach(f.w.Nodes(), "pv-1", "")
	return f
}

func runs(w *fake.World, id string) bool {
	return slices.ContainsFunc(w.Instances(), func(i cluster.Instance) bool { return i.ID == id })
}

func TestDetachingSurvivesEveryFault(t *testing.T) {
	eachFault(t,
		func(t *testing.T) *functions {
			f := singleRows(t, pattern(1500, 3000))
			f.w.DeleteClaims()
			return f
		},
		func(f *functions, p *fake.Ports) error {
			return f.lifecycle(p).Run(context.Background(), f.w.Now().Add(14*time.Second))
		},
		func(t *testing.T, f *functions) {
			f.rest(t, 2)
			if !runs(f.w, only) {
				t.Errorf("the instance ended with its volume attached: %+v", f.w.Instances())
			}
			f.w.Detach("pv-1")
			f.comeToRest(t)
			if runs(f.w, only) {
				t.Error("the instance is still there")
			}
		})
}

// TestRepairSurvivesEveryFault has a pod that may not be disrupted and a volume that stays attached: nothing stops a
// repair.
func TestRepairSurvivesEveryFault(t *testing.T) {
	eachFault(t,
		func(t *testing.T) *functions {
			pod := pattern(1500, 3000)
			pod.DoNotDisrupt = "true"
			f := singleRows(t, pod)
			f.w.Ail("KernelReady", "False")
			f.w.Tick(30 * time.Minute)
			return f
		},
		func(f *functions, p *fake.Ports) error {
			return f.lifecycle(p).Run(context.Background(), f.w.Now().Add(3*time.Second))
		},
		func(t *testing.T, f *functions) {
			f.comeToRest(t)
			f.rest(t, 2)
			if runs(f.w, only) {
				t.Error("the sick instance is still there")
			}
		})
}

func TestHandMadeClaimsSurviveEveryFault(t *testing.T) {
	eachFault(t, byHand,
		func(f *functions, p *fake.Ports) error {
			return f.provision(p).Run(context.Background(), f.once())
		},
		func(t *testing.T, f *functions) {
			f.w.Tick(2 * time.Minute)
			f.comeToRest(t)
			if c := mine(t, f.w); !c.Finalizer || c.ProviderID == "" {
				t.Errorf("the claim is %+v", c)
			}
		})
}

// TestAnInstanceThatRecoversIsKept has it pass its checks again just before two minutes are over, while lifecycle is
// there.
func TestAnInstanceThatRecoversIsKept(t *testing.T) {
	f := singleRows(t, pattern(1500, 3000))
	f.w.Impair(only)
	f.w.Recover(only, f.w.Now().Add(105*time.Second))
	f.w.Skip(90 * time.Second)
	p := f.w.Ports(fake.Fault{})
	l := f.lifecycle(p)
	l.Hints.Until = f.w.Now().Add(45 * time.Second)
	if err := l.Run(context.Background(), l.Hints.Until); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, c := range p.Calls() {
		if c == "describe instance status" {
			asked++
		}
	}
	if c := claimOf(f, only); c.Name == "" || !c.Deleting.IsZero() || asked != 3 {
		t.Errorf("claim %q is deleted at %s; EC2 was asked %d times, want 3: impaired, impaired still, not any more", c.Name, c.Deleting, asked)
	}
}

// TestAnImpairedInstanceIsReplaced has a protected pod on it: the instance cannot be relied on, so nothing is waited
// for.
func TestAnImpairedInstanceIsReplaced(t *testing.T) {
	pod := pattern(1500, 3000)
	pod.DoNotDisrupt = "true"
	f := singleRows(t, pod)
	f.w.Impair(only)
	f.rest(t, 4)
	if !runs(f.w, only) {
		t.Error("it went before two minutes were over")
	}
	f.rest(t, 6)
	if runs(f.w, only) {
		t.Error("it is kept")
	}
	f.comeToRest(t)
	if e := f.w.Events("Node"); !slices.ContainsFunc(e, hasReason("InstanceUnhealthy")) || !slices.ContainsFunc(e, hasReason("TerminatingOnInterruption")) {
		t.Errorf("events on the node: %q", e)
	}
}
