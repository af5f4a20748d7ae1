package lifecycle_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"joiner.sh/pkg/controllers/remotewrite"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/timeseries"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

func TestDeletionsWakeProvision(t *testing.T) {
	f := controllertest.RunningPods(t)
	before := f.World.CountWakeups("provision")
	f.World.DeleteClaims()
	if err := f.Lifecycle(f.World.Ports(fake.Fault{})).Run(context.Background(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if got := f.World.CountWakeups("provision") - before; got != 1 {
		t.Errorf("provision was woken %d times by one pass", got)
	}
}

func TestLaunchesWakeLifecycle(t *testing.T) {
	w := controllertest.NewWorld()
	w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	if _, err := controllertest.InvokeProvision(t, w, 0); err != nil {
		t.Fatal(err)
	}
	if got := w.CountWakeups("lifecycle"); got != 1 {
		t.Errorf("lifecycle was woken %d times", got)
	}
}

func TestInterruptionDeletesMarksAndWakes(t *testing.T) {
	f := controllertest.RunningPods(t)
	n := controllertest.SpotNotice(f.World)
	p, l := f.World.CountWakeups("provision"), f.World.CountWakeups("lifecycle")
	for range 2 { // a notice may come twice
		if err := f.Interruption(f.World.Ports(fake.Fault{})).HandleNotices(context.Background(), n); err != nil {
			t.Fatal(err)
		}
	}
	if f.World.CountWakeups("provision") != p+2 || f.World.CountWakeups("lifecycle") != l+2 {
		t.Errorf("woken: provision %d, lifecycle %d", f.World.CountWakeups("provision")-p, f.World.CountWakeups("lifecycle")-l)
	}
	deleted := 0
	for _, c := range f.World.Claims() {
		if !c.Deleting.IsZero() {
			deleted++
			if c.InstanceID() != n.Instance {
				t.Errorf("claim %s was marked for deletion for %s", c.Name, n.Instance)
			}
			if k := f.World.TaintsOf(c.NodeName); !slices.Contains(k, "karpenter.sh/disrupted:NoSchedule") {
				t.Errorf("taints of its node: %v", k)
			}
		}
	}
	if deleted != 1 {
		t.Errorf("%d claims are marked for deletion", deleted)
	}
	instances := f.World.Instances()
	i := instances[slices.IndexFunc(instances, func(i cluster.Instance) bool { return i.ID == n.Instance })]
	for _, o := range f.World.MarkedOfferings() {
		if o.Type != i.Type || o.Zone != i.Zone || o.CapacityType != "spot" {
			t.Errorf("marked %s, of %+v", o, i)
		}
	}
	for kind, events := range map[string][]string{"NodeClaim": f.World.Events("NodeClaim"), "Node": f.World.Events("Node")} {
		events = slices.DeleteFunc(events, func(e string) bool { return strings.HasPrefix(e, "Launched: ") })
		if len(events) != 3 || !strings.HasPrefix(events[0], "SpotInterrupted: ") || !strings.HasPrefix(events[1], "TerminatingOnInterruption: ") ||
			!strings.HasPrefix(events[2], "SpotInterrupted: ") {
			t.Errorf("events on the %s: %q", kind, events)
		}
	}
}

// What EC2 takes back is left alone for minutes, what it may take back for as long as recommendations are heeded.
func TestMarksLastAsTheirCauseSays(t *testing.T) {
	for kind, want := range map[interruption.Kind]time.Duration{interruption.Spot: 3 * time.Minute, interruption.Rebalance: 30 * time.Minute} {
		f := controllertest.Aged(t)
		controllertest.HandleNotices(t, f, interruption.Notice{Kind: kind, Instance: controllertest.FirstInstance(f), Time: f.World.Now()})
		marks, err := f.World.Ports(fake.Fault{}).ListUnavailable(t.Context())
		if err != nil || len(marks) != 1 || marks[0].Until.Sub(f.World.Now()) != want {
			t.Errorf("%s: marks %v, %v; want one for %s", kind, marks, err, want)
		}
	}
}

func TestNoticeAboutAForeignInstanceDoesNothing(t *testing.T) {
	f := controllertest.RunningPods(t)
	p := f.World.Ports(fake.Fault{})
	if err := f.Interruption(p).HandleNotices(context.Background(), interruption.Notice{Kind: interruption.Spot, Instance: "i-foreign"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Calls(), ", "); got != "list claims" {
		t.Errorf("calls %s", got)
	}
}

// TestCapacityComesBeforeAnInterruptedInstanceGoes gives the functions the two minutes of a notice.
func TestCapacityComesBeforeAnInterruptedInstanceGoes(t *testing.T) {
	f := controllertest.RunningPods(t)
	f.World.ProtectApp("web", 2)
	f.World.ProtectApp("db", 0)
	n := controllertest.SpotNotice(f.World)
	if err := f.Interruption(f.World.Ports(fake.Fault{})).HandleNotices(context.Background(), n); err != nil {
		t.Fatal(err)
	}
	end := f.World.Now().Add(2 * time.Minute)
	f.Rest(t, 4)
	if f.World.Now().After(end) {
		t.Fatalf("it took until %s", f.World.Now())
	}
	f.World.InterruptInstance(n.Instance)
	controllertest.NoProblems(t, f.World)
}

// TestChangedClaimIsLeftToTheNextPass has somebody else write the claim between the read and the write.
func TestChangedClaimIsLeftToTheNextPass(t *testing.T) {
	f := controllertest.WaitingPods(t)
	if _, err := controllertest.InvokeProvision(t, f.World, 0); err != nil {
		t.Fatal(err)
	}
	f.World.Advance(30 * time.Second)
	p := f.World.Ports(fake.Fault{})
	var once sync.Once // steps of several claims are taken side by side
	meddled := false
	p.Before = func(call string) {
		if call != "write status of claim" {
			return
		}
		once.Do(func() {
			meddled = true
			for left := f.World.Claims(); len(left) > 0; { // a step that is being taken may be quicker
				if _, err := f.World.Ports(fake.Fault{}).AnnotateClaim(context.Background(), left[0], map[string]string{"somebody": "else"}); err != nil {
					t.Log(err)
				}
				left = slices.DeleteFunc(f.World.Claims(), func(c cluster.Claim) bool { return c.Annotations["somebody"] != "" })
			}
		})
	}
	if err := f.Lifecycle(p).Run(context.Background(), f.World.Now().Add(5*time.Second)); err != nil {
		t.Fatal(err)
	}
	if !meddled {
		t.Fatal("nothing was written")
	}
	for _, c := range f.World.Claims() {
		if !c.Is("Initialized") || c.Annotations["somebody"] != "else" {
			t.Errorf("claim %s: initialized %t, annotations %v", c.Name, c.Is("Initialized"), c.Annotations)
		}
	}
}

// TestOneFailedStepStopsNoOther fails the taint of one node of three.
func TestOneFailedStepStopsNoOther(t *testing.T) {
	f := controllertest.RunningPods(t)
	f.World.DeleteClaims()
	err := f.Lifecycle(f.World.Ports(fake.Fault{Call: 7})).Run(context.Background(), f.Once())
	if fault, ok := errors.AsType[*fake.FaultError](err); !ok || fault.Call != "taint node for termination" || !strings.Contains(err.Error(), "taint node for termination") {
		t.Fatalf("error %v", err)
	}
	deleted := 0
	for name := range strings.FieldsSeq(f.World.Nodes()) {
		if slices.Contains(f.World.TaintsOf(name), "karpenter.sh/disrupted:NoSchedule") {
			deleted++
		}
	}
	if deleted != 2 {
		t.Errorf("%d of 3 nodes were marked for deletion, 1 was to fail", deleted)
	}
}

// TestLeaseIsReleased shows that the next invocation need not wait for the lease of one that ended well or with an
// error.
func TestLeaseIsReleased(t *testing.T) {
	for _, call := range []int{0, 5, 6, 7} {
		f := controllertest.WaitingPods(t)
		_ = f.Provision(f.World.Ports(fake.Fault{Call: call})).Run(context.Background(), f.Once())
		if _, ok, err := f.World.Ports(fake.Fault{}).Acquire(context.Background(), "joiner-capacity", "next", time.Minute); !ok || err != nil {
			t.Errorf("after a fault of call %d the lease is held: %t %v", call, ok, err)
		}
	}
}

// TestTerminationGracePeriodEndsABlockedDrain has a budget that allows nothing.
func TestTerminationGracePeriodEndsABlockedDrain(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	grace := time.Minute
	f.World.ChangePool(func(p *cluster.Pool) { p.TerminationGrace = &grace })
	f.World.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	f.Rest(t, 4)
	f.World.ProtectApp("web", 1)
	old := f.World.Instances()[0]
	f.World.DeleteClaims()
	f.Rest(t, 1)
	if got := f.World.Instances()[0]; got.ID != old.ID {
		t.Fatalf("%s went before its time", old.ID)
	}
	f.Rest(t, 5)
	for _, i := range f.World.Instances() {
		if i.ID == old.ID {
			t.Errorf("%s is kept beyond its time", i.ID)
		}
	}
	if events := f.World.Events("NodeClaim"); !slices.ContainsFunc(events, controllertest.HasReason("TerminationGracePeriodExpiring")) {
		t.Errorf("events on the claim: %q", events)
	}
	if events := f.World.Events("Node"); !slices.ContainsFunc(events, controllertest.HasReason("FailedDraining")) || !slices.ContainsFunc(events, controllertest.HasReason("TerminationGracePeriodExpiring")) {
		t.Errorf("events on the node: %q", events)
	}
	if events := f.World.Events("Pod"); !slices.ContainsFunc(events, controllertest.HasReason("Disrupted")) {
		t.Errorf("events on pods: %q", events)
	}
}

// TestFailedSweepStopsNoStep has the very first call fail.
func TestFailedSweepStopsNoStep(t *testing.T) {
	f := controllertest.RunningPods(t)
	f.World.DeleteClaims()
	err := f.Lifecycle(f.World.Ports(fake.Fault{Call: 1})).Run(context.Background(), f.Once())
	if fault, ok := errors.AsType[*fake.FaultError](err); !ok || fault.Call != "sweep launch templates" {
		t.Fatalf("error %v", err)
	}
	for name := range strings.FieldsSeq(f.World.Nodes()) {
		if !slices.Contains(f.World.TaintsOf(name), "karpenter.sh/disrupted:NoSchedule") {
			t.Errorf("node %s was not marked for deletion", name)
		}
	}
}

// seriesSink is a store and an endpoint that remember the last they were given.
type seriesSink struct {
	st     remotewrite.State
	values map[string]float64
	pass   context.Context // the last
}

// passReader tells of what context a pass reads with.
type passReader struct {
	*fake.Ports
	sink *seriesSink
}

func (r passReader) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	r.sink.pass = ctx
	return r.Ports.ReadSnapshot(ctx)
}

func (r passReader) CachedSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	r.sink.pass = ctx
	return r.Ports.CachedSnapshot(ctx)
}

func (s *seriesSink) ReadState(context.Context) (remotewrite.State, bool, error) {
	return s.st, false, nil
}

func (s *seriesSink) WriteState(_ context.Context, st remotewrite.State) error { s.st = st; return nil }

func (s *seriesSink) ReadSurroundings(_ context.Context, in cluster.Snapshot) (cluster.Snapshot, timeseries.Totals, error) {
	return in, nil, nil
}

// WriteSeries takes longer than the pass beside which it sends.
func (s *seriesSink) WriteSeries(ctx context.Context, all, _ []timeseries.Series, _ time.Time) error {
	if <-s.pass.Done(); ctx.Err() != nil {
		return ctx.Err()
	}
	s.values = map[string]float64{}
	for _, one := range all {
		s.values[one.Name] += one.Value
	}
	return nil
}

// TestSeriesOfAClusterThatEnds: from running pods to no node, invocation by invocation, every NodeClaim and eviction is
// counted once.
func TestSeriesOfAClusterThatEnds(t *testing.T) {
	f, sink := controllertest.RunningPods(t), &seriesSink{}
	claims := float64(len(f.World.Claims()))
	series := &remotewrite.Recorder{Store: sink, Writer: sink, Around: sink, Now: f.World.Now, Log: slog.New(slog.DiscardHandler)}
	for i := range 30 {
		ports := f.World.Ports(fake.Fault{})
		l := f.Lifecycle(ports)
		l.Read, l.Series = passReader{ports, sink}, series
		if err := l.Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			f.World.DeleteClaims()
		}
		f.World.Advance(time.Minute)
	}
	if n := len(f.World.Claims()); n != 0 || claims == 0 {
		t.Fatalf("%v NodeClaims, %d of them are left", claims, n)
	}
	for name, want := range map[string]float64{"karpenter_nodeclaims_terminated_total": claims, "karpenter_nodes_terminated_total": claims, "karpenter_cluster_state_node_count": 0} {
		if sink.values[name] != want {
			t.Errorf("%s is %v, want %v", name, sink.values[name], want)
		}
	}
	if sink.values["karpenter_pods_eviction_requests_total"] == 0 || sink.values["karpenter_nodeclaims_termination_duration_seconds_count"] != claims {
		t.Errorf("series %v", sink.values)
	}
}
