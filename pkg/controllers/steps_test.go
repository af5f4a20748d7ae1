package controllers_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// byHand is a world with a claim that a user made, and with the pods of one pool.
func byHand(t *testing.T) *controllertest.Functions {
	t.Helper()
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.AddClaim(cluster.Claim{Name: "mine", Labels: map[string]string{"team": "a"}, Requests: resources.List{CPU: 3000},
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
	f.Rest(t, 4)
	controllertest.NoProblems(t, f.World)
	c := mine(t, f.World)
	if !c.Is("Initialized") || !c.Finalizer || c.Labels["karpenter.k8s.aws/ec2nodeclass"] != "default" || c.Labels["team"] != "a" {
		t.Errorf("the claim is %+v", c)
	}
	if i := f.World.Instances(); len(i) != 1 || i[0].CapacityType != "on-demand" || i[0].Zone != "us-west-2b" || i[0].Type != "c5.xlarge" {
		t.Errorf("instances %+v", i)
	}
	if got := f.World.CountedResources().Get("nodes"); got != 0 {
		t.Errorf("the pool counts %d nodes", got)
	}
	if got := f.World.RegistrationsOf("general"); len(got) != 0 {
		t.Errorf("the pool was told of %v", got)
	}
	f.World.DeleteClaims()
	f.Rest(t, 3)
	if left := f.World.DescribeLeftovers(); left != "0 claims, 0 nodes, 0 instances, 0 pods" {
		t.Errorf("left are %s", left)
	}
}

// TestNothingIsLaunchedBeforeTheFinalizerIsStored fails the write of the finalizer.
func TestNothingIsLaunchedBeforeTheFinalizerIsStored(t *testing.T) {
	dry := byHand(t)
	p := dry.World.Ports(fake.Fault{})
	if err := dry.Provision(p).Run(context.Background(), dry.Once()); err != nil {
		t.Fatal(err)
	}
	f := byHand(t)
	p = f.World.Ports(fake.Fault{Call: slices.Index(p.Calls(), "adopt claim") + 1})
	if err := f.Provision(p).Run(context.Background(), f.Once()); err == nil {
		t.Error("no error")
	}
	if slices.Contains(p.Calls(), "launch") {
		t.Errorf("calls %v", p.Calls())
	}
}

// TestALostFinalizerIsPutBack takes it off a claim in service.
func TestALostFinalizerIsPutBack(t *testing.T) {
	f := controllertest.RunningPods(t)
	name := f.World.Claims()[0].Name
	f.World.StripClaim(name)
	f.Rest(t, 1)
	if c := f.World.Claims()[0]; c.Name != name || !c.Finalizer {
		t.Errorf("claim %s has no finalizer", name)
	}
}

// TestPoolsCountAndRememberTheirNodes follows a pool from its first node to none.
func TestPoolsCountAndRememberTheirNodes(t *testing.T) {
	f := controllertest.RunningPods(t)
	claims := len(f.World.Claims())
	if got := f.World.CountedResources(); got.Get("nodes") != int64(claims) || got.CPU == 0 || got.Memory == 0 {
		t.Errorf("%d claims are counted as %s", claims, got)
	}
	ok := 0
	for _, r := range f.World.RegistrationsOf("general") {
		if r.OK {
			ok++
		}
	}
	if ok != claims {
		t.Errorf("%d of %d registrations are remembered", ok, claims)
	}
	f.World.StopApp("web")
	f.World.StopApp("db")
	f.World.DeleteClaims()
	f.Rest(t, 4)
	if got := f.World.CountedResources(); !got.IsZero() {
		t.Errorf("an empty pool is counted as %s", got)
	}
}

// refusedEnd is that EC2 refuses to end an instance.
type refusedEnd struct{}

func (refusedEnd) Error() string             { return "UnauthorizedOperation" }
func (refusedEnd) Refusal() (string, string) { return "Unauthorized", "instance runs on" }

// TestOneThatFailsAllTheTimeHoldsUpNobody cannot end one instance: its claim says why, and the other nodes are gone
// within the same invocation.
func TestOneThatFailsAllTheTimeHoldsUpNobody(t *testing.T) {
	f := controllertest.RunningPods(t)
	f.World.StopApp("web")
	f.World.StopApp("db")
	bad, tries := f.World.Instances()[0].ID, 0
	f.World.FailEnd = func(id string) error {
		if id == bad {
			tries++
			return refusedEnd{}
		}
		return nil
	}
	all := len(f.World.Claims())
	f.World.DeleteClaims()
	err := f.Lifecycle(f.World.Ports(fake.Fault{})).Run(context.Background(), f.World.Now().Add(50*time.Second))
	if err == nil || strings.Count(err.Error(), "UnauthorizedOperation") != 1 {
		t.Errorf("error %v, want that of the one step", err)
	}
	if left := f.World.Claims(); len(left) != 1 || left[0].InstanceID() != bad || all < 2 {
		t.Errorf("%d of %d claims are left", len(left), all)
	}
	state := f.World.Claims()[0].Condition(v1.ConditionInstanceTerminating)
	if state.Status != "False" || state.Reason != "Unauthorized" || state.Message != "instance runs on" {
		t.Errorf("condition %+v", state)
	}
	if told := f.World.Events("NodeClaim"); !slices.Contains(told, "Unauthorized: instance runs on") {
		t.Errorf("events %v", told)
	}
	if tries < 4 || tries > 7 {
		t.Errorf("it was tried %d times in 50 seconds, want each time later", tries)
	}
}

// TestTellingIsNoReasonToStay has something to tell in each pass and nothing to do.
func TestTellingIsNoReasonToStay(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld(), Repair: true}
	f.World.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	f.World.RunApp("db", 1, controllertest.InZone("us-west-2a", controllertest.PodOf(1500, 3000)))
	f.World.RunApp("cache", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000)))
	f.Rest(t, 4)
	controllertest.NoProblems(t, f.World)
	f.World.SetNodeCondition("StorageReady", "False")
	f.World.Advance(40 * time.Minute)
	p := f.World.Ports(fake.Fault{})
	if err := f.Lifecycle(p).Run(context.Background(), f.World.Now().Add(50*time.Second)); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(p.Calls(), "wait") || !slices.Contains(p.Calls(), "write event") {
		t.Errorf("calls %v", p.Calls())
	}
	if len(f.World.Instances()) < 2 || !slices.ContainsFunc(f.World.Events("Node"), controllertest.HasReason("NodeRepairBlocked")) {
		t.Errorf("%d instances, events on nodes %q", len(f.World.Instances()), f.World.Events("Node"))
	}
}

// TestNobodyStaysToWatchABlockedDrain has a budget that never lets the last pod of a node go: while that is news the
// Functions stay, and then they come once a minute, see that nothing changed, and leave.
func TestNobodyStaysToWatchABlockedDrain(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	f.Rest(t, 4)
	f.World.ProtectApp("web", 1)
	f.World.DeleteClaims()
	f.Rest(t, 3)
	stay := func() (waits []bool) {
		t.Helper()
		l, p := f.World.Ports(fake.Fault{}), f.World.Ports(fake.Fault{})
		if err := f.Lifecycle(l).Run(t.Context(), f.World.Now().Add(50*time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := f.Provision(p).Run(t.Context(), f.World.Now().Add(50*time.Second)); err != nil {
			t.Fatal(err)
		}
		return []bool{slices.Contains(l.Calls(), "wait"), slices.Contains(p.Calls(), "wait")}
	}
	if got := stay(); !slices.Equal(got, []bool{true, true}) {
		t.Errorf("lifecycle and provision watch a new drain: %v", got)
	}
	f.World.Advance(5 * time.Minute)
	if got := stay(); !slices.Equal(got, []bool{false, false}) {
		t.Errorf("lifecycle and provision watch an old drain: %v", got)
	}
	f.World.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	f.Rest(t, 10)
	if slices.ContainsFunc(f.World.Claims(), func(c cluster.Claim) bool { return !c.Deleting.IsZero() }) {
		t.Errorf("the drain does not go on once the budget allows it")
	}
	if len(controllertest.EventsWith(f.World.Events("Pod"), "Evicted: Evicted pod: Forceful Termination")) != 1 {
		t.Errorf("events on pods: %q", f.World.Events("Pod"))
	}
}

// only is the one instance of a world made by alone.
const only = "i-000004"

// singleRows is a world with one node, which has a pod and an attached volume.
func singleRows(t *testing.T, pod cluster.Pod) *controllertest.Functions {
	t.Helper()
	f := &controllertest.Functions{World: controllertest.NewWorld(), Repair: true}
	f.World.RunApp("web", 1, pod)
	f.ComeToRest(t)
	if i := f.World.Instances(); len(i) != 1 || i[0].ID != only {
		t.Fatalf("instances %+v", i)
	}
	f.World.AttachVolume(f.World.Nodes(), "pv-1", "")
	return f
}

func runs(w *fake.World, id string) bool {
	return slices.ContainsFunc(w.Instances(), func(i cluster.Instance) bool { return i.ID == id })
}

func TestDetachingSurvivesEveryFault(t *testing.T) {
	controllertest.EachFault(t,
		func(t *testing.T) *controllertest.Functions {
			f := singleRows(t, controllertest.PodOf(1500, 3000))
			f.World.DeleteClaims()
			return f
		},
		func(f *controllertest.Functions, p *fake.Ports) error {
			return f.Lifecycle(p).Run(context.Background(), f.World.Now().Add(14*time.Second))
		},
		func(t *testing.T, f *controllertest.Functions) {
			f.Rest(t, 2)
			if !runs(f.World, only) {
				t.Errorf("the instance ended with its volume attached: %+v", f.World.Instances())
			}
			f.World.DetachVolume("pv-1")
			f.ComeToRest(t)
			if runs(f.World, only) {
				t.Error("the instance is still there")
			}
		})
}

// TestRepairSurvivesEveryFault has a pod that may not be disrupted and a volume that stays attached: nothing stops a
// repair.
func TestRepairSurvivesEveryFault(t *testing.T) {
	controllertest.EachFault(t,
		func(t *testing.T) *controllertest.Functions {
			pod := controllertest.PodOf(1500, 3000)
			pod.DoNotDisrupt = "true"
			f := singleRows(t, pod)
			f.World.SetNodeCondition("KernelReady", "False")
			f.World.Advance(30 * time.Minute)
			return f
		},
		func(f *controllertest.Functions, p *fake.Ports) error {
			return f.Lifecycle(p).Run(context.Background(), f.World.Now().Add(3*time.Second))
		},
		func(t *testing.T, f *controllertest.Functions) {
			f.ComeToRest(t)
			f.Rest(t, 2)
			if runs(f.World, only) {
				t.Error("the sick instance is still there")
			}
		})
}

func TestHandMadeClaimsSurviveEveryFault(t *testing.T) {
	controllertest.EachFault(t, byHand,
		func(f *controllertest.Functions, p *fake.Ports) error {
			return f.Provision(p).Run(context.Background(), f.Once())
		},
		func(t *testing.T, f *controllertest.Functions) {
			f.World.Advance(2 * time.Minute)
			f.ComeToRest(t)
			if c := mine(t, f.World); !c.Finalizer || c.ProviderID == "" {
				t.Errorf("the claim is %+v", c)
			}
		})
}

// TestAnInstanceThatRecoversIsKept has it pass its checks again just before two minutes are over, while lifecycle is
// there.
func TestAnInstanceThatRecoversIsKept(t *testing.T) {
	f := singleRows(t, controllertest.PodOf(1500, 3000))
	f.World.ImpairInstance(only)
	f.World.RecoverInstance(only, f.World.Now().Add(105*time.Second))
	f.World.SkipTime(90 * time.Second)
	p := f.World.Ports(fake.Fault{})
	l := f.Lifecycle(p)
	l.Hints.Until = f.World.Now().Add(45 * time.Second)
	if err := l.Run(context.Background(), l.Hints.Until); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, c := range p.Calls() {
		if c == "describe instance status" {
			asked++
		}
	}
	if c := controllertest.ClaimOf(f, only); c.Name == "" || !c.Deleting.IsZero() || asked != 3 {
		t.Errorf("claim %q is deleted at %s; EC2 was asked %d times, want 3: impaired, impaired still, not any more", c.Name, c.Deleting, asked)
	}
}

// TestAnImpairedInstanceIsReplaced has a protected pod on it: the instance cannot be relied on, so nothing is waited
// for.
func TestAnImpairedInstanceIsReplaced(t *testing.T) {
	pod := controllertest.PodOf(1500, 3000)
	pod.DoNotDisrupt = "true"
	f := singleRows(t, pod)
	f.World.ImpairInstance(only)
	f.Rest(t, 4)
	if !runs(f.World, only) {
		t.Error("it went before two minutes were over")
	}
	f.Rest(t, 6)
	if runs(f.World, only) {
		t.Error("it is kept")
	}
	f.ComeToRest(t)
	if e := f.World.Events("Node"); !slices.ContainsFunc(e, controllertest.HasReason("InstanceUnhealthy")) || !slices.ContainsFunc(e, controllertest.HasReason("TerminatingOnInterruption")) {
		t.Errorf("events on the node: %q", e)
	}
}
