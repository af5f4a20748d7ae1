package stoppedcapacity_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers/stoppedcapacity"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// asked is a world whose buffer asks for room for so many pods.
func asked(pods int) *controllertest.Functions {
	w := controllertest.NewWorld()
	b := cluster.StoppedBuffer{Namespace: "default", Name: "spare"}
	for _, name := range []string{"capacity-buffer-spare-1", "capacity-buffer-spare-2", "capacity-buffer-spare-3"}[:pods] {
		p := controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000))
		p.Namespace, p.Name, p.UID, p.Unscheduled, p.Virtual = "default", name, name, true, true
		b.Pods = append(b.Pods, p)
	}
	w.Stopped = []cluster.StoppedBuffer{b}
	return &controllertest.Functions{World: w}
}

// kept is a world whose buffer is full: every claim is stopped, and there is no node.
func kept(t *testing.T) *controllertest.Functions {
	t.Helper()
	f := asked(1)
	f.Rest(t, 10)
	controllertest.NoProblems(t, f.World)
	stopped, others := claimsByState(f.World)
	if len(stopped) != 1 || len(others) > 0 || f.World.Nodes() != "" || f.World.Instances()[0].State != "stopped" {
		t.Fatalf("stopped %v, others %v, nodes %q, instances %v", stopped, others, f.World.Nodes(), f.World.Instances())
	}
	return f
}

// claimsByState are the claims whose instances are stopped, and all others.
func claimsByState(w *fake.World) (stopped, others []cluster.Claim) {
	for _, c := range w.Claims() {
		if c.Is(v1.ConditionStopped) {
			stopped = append(stopped, c)
		} else {
			others = append(others, c)
		}
	}
	return stopped, others
}

// filled fails unless the pods run and the buffer is full again, with no instance too many.
func filled(t *testing.T, f *controllertest.Functions, nodes int) {
	t.Helper()
	f.ComeToRest(t)
	f.Rest(t, 8)
	controllertest.NoProblems(t, f.World)
	stopped, others := claimsByState(f.World)
	if len(stopped) != 1 || len(others) != nodes {
		t.Errorf("%d claims are stopped and %d are not, want 1 and %d", len(stopped), len(others), nodes)
	}
	for _, c := range others {
		if !c.Is(v1.ConditionInitialized) {
			t.Errorf("claim %s is not initialized: %+v", c.Name, c.Conditions)
		}
	}
}

// The NodePool's status.resources have the stopped node, which limits count.
func TestAStoppedNodeCountsForItsNodePool(t *testing.T) {
	f := kept(t)
	if has := f.World.CountedResources(); has.Get("nodes") != 1 || has.CPU == 0 {
		t.Errorf("status.resources have %s", has)
	}
}

func TestPodsTakeAStoppedNode(t *testing.T) {
	f := kept(t)
	was, launches := f.World.Claims()[0], f.World.Launches
	f.World.RunApp("web", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000)))
	p, err := controllertest.InvokeProvision(t, f.World, 0)
	if err != nil {
		t.Fatal(err)
	}
	if f.World.Launches != launches {
		t.Errorf("%d instances were launched although one waits; calls %v", f.World.Launches-launches, p.Calls())
	}
	f.World.Advance(time.Minute)
	f.Rest(t, 2)
	var now cluster.Claim
	for _, c := range f.World.Claims() {
		if c.Name == was.Name {
			now = c
		}
	}
	if now.ProviderID != was.ProviderID || !now.Is(v1.ConditionInitialized) || now.NodeName == "" || now.Standby() {
		t.Errorf("its claim is %+v", now)
	}
	filled(t, f, 1)
	if f.World.Launches != launches+1 {
		t.Errorf("%d instances were launched to fill the buffer again, want 1", f.World.Launches-launches)
	}
}

// A pass that may not write says what it would start, and starts nothing.
func TestAPassThatMayNotWriteStartsNothing(t *testing.T) {
	f := kept(t)
	f.World.RunApp("web", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000)))
	var log bytes.Buffer
	ports := f.World.Ports(fake.Fault{})
	controller := f.Provision(ports)
	controller.Log = slog.New(slog.NewTextHandler(&log, nil))
	controller.Stopped.(*stoppedcapacity.Starter).Log = controller.Log
	controller.Permission = func(context.Context) (bool, error) { return false, nil }
	if err := controller.Run(t.Context(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if want := "dry-run: start the instance of " + f.World.Claims()[0].Name; !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %q:\n%s", want, log.String())
	}
	if c := f.World.Claims(); len(c) != 1 || !c[0].StartRequested().IsZero() || f.World.Instances()[0].State != "stopped" {
		t.Errorf("claims %v, instances %v, calls %v", c, f.World.Instances(), ports.Calls())
	}
}

// A start is a line of the plan, and one when it is done.
func TestAStartIsLoggedOnce(t *testing.T) {
	f := kept(t)
	f.World.RunApp("web", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000)))
	var log bytes.Buffer
	c := f.Provision(f.World.Ports(fake.Fault{}))
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	c.Stopped.(*stoppedcapacity.Starter).Log = c.Log
	if err := c.Run(t.Context(), f.Once()); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"start the instance of " + f.World.Claims()[0].Name, "msg=started claim=" + f.World.Claims()[0].Name} {
		if n := strings.Count(log.String(), line); n != 1 {
			t.Errorf("the log has %q %d times, want once:\n%s", line, n, log.String())
		}
	}
}

// Whatever call fails or is the last, pods get their node, and no instance runs that nobody has use for.
func TestAStartMayFailAnywhere(t *testing.T) {
	controllertest.EachFault(t, func(t *testing.T) *controllertest.Functions {
		f := kept(t)
		f.World.RunApp("web", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000)))
		return f
	}, func(f *controllertest.Functions, p *fake.Ports) error {
		return f.Provision(p).Run(context.Background(), f.Once())
	}, func(t *testing.T, f *controllertest.Functions) {
		filled(t, f, 1)
		if f.World.Launches > 2 {
			t.Errorf("%d instances were launched, want 2: the one that was started, and one in its stead", f.World.Launches)
		}
	})
}

// The same holds for the pass that stops a node.
func TestAStopMayFailAnywhere(t *testing.T) {
	controllertest.EachFault(t, func(t *testing.T) *controllertest.Functions {
		f := asked(1)
		for range 10 {
			f.Rest(t, 1)
			if c := f.World.Claims(); len(c) == 1 && c[0].Is(v1.ConditionInitialized) {
				f.World.Advance(30 * time.Second)
				return f
			}
		}
		t.Fatal("no node warms")
		return nil
	}, func(f *controllertest.Functions, p *fake.Ports) error {
		return f.Lifecycle(p).Run(context.Background(), f.World.Now().Add(20*time.Second))
	}, func(t *testing.T, f *controllertest.Functions) {
		filled(t, f, 0)
		if f.World.Launches != 1 {
			t.Errorf("%d instances were launched, want 1", f.World.Launches)
		}
	})
}

// EC2 has no capacity to start it: the pass that hears so launches another, and the stopped one stays.
func TestARefusedStartIsLaunchedInTheSamePass(t *testing.T) {
	f := kept(t)
	was := f.World.Claims()[0]
	f.World.Refuse = func(o instancetypes.OfferingKey) bool {
		return o.CapacityType == "on-demand" && o.Type == was.Labels[instancetypes.LabelType] && o.Zone == was.Labels[instancetypes.LabelZone]
	}
	f.World.RunApp("web", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000)))
	if _, err := controllertest.InvokeProvision(t, f.World, 0); err != nil {
		t.Fatal(err)
	}
	stopped, others := claimsByState(f.World)
	if len(stopped) != 1 || len(others) != 1 || others[0].ProviderID == "" {
		t.Fatalf("stopped %v, others %v", stopped, others)
	}
	if !stopped[0].StartRequested().IsZero() {
		t.Error("its claim says still that it is asked to start")
	}
	if !strings.Contains(strings.Join(f.World.Events("NodeClaim"), "\n"), "FailedStart") {
		t.Errorf("nobody says so: %v", f.World.Events("NodeClaim"))
	}
	f.World.Refuse = nil
	filled(t, f, 1)
}

// A stop of somebody else ends a node that was started, and one that warms; the end of one that waits ends its claim.
func TestSomebodyElseStopsOrEnds(t *testing.T) {
	for name, kind := range map[string]interruption.Kind{"terminated": interruption.Ended, "shutting-down": interruption.Ending} {
		t.Run(name, func(t *testing.T) {
			f := kept(t)
			was, id := f.World.Claims()[0].Name, controllertest.FirstInstance(f)
			f.World.StopInstance(id, name)
			controllertest.HandleNotices(t, f, interruption.Notice{Kind: kind, Instance: id, Time: f.World.Now()})
			filled(t, f, 0)
			if now := f.World.Claims()[0].Name; now == was {
				t.Errorf("claim %s has an instance that ended", now)
			}
		})
	}
	t.Run("without a notice", func(t *testing.T) {
		f := kept(t)
		was := f.World.Claims()[0].Name
		f.World.StopInstance(controllertest.FirstInstance(f), "terminated")
		f.Rest(t, 1)
		filled(t, f, 0)
		if now := f.World.Claims()[0].Name; now == was {
			t.Errorf("claim %s has an instance that ended", now)
		}
	})
	t.Run("stopped once started", func(t *testing.T) {
		f := kept(t)
		was := f.World.Claims()[0]
		f.World.RunApp("web", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000)))
		f.Rest(t, 6)
		f.World.Advance(3 * time.Minute)
		id := was.InstanceID()
		f.World.StopInstance(id, "stopped")
		controllertest.HandleNotices(t, f, interruption.Notice{Kind: interruption.Stopped, Instance: id, Time: f.World.Now()})
		if c := controllertest.ClaimOf(f, id); c.Name != "" && c.Deleting.IsZero() {
			t.Errorf("claim %s lives on, whose instance somebody stopped", c.Name)
		}
		filled(t, f, 1)
	})
}

// Disruption leaves the buffer alone, and nothing is left once it is gone.
func TestDisruptionLeavesStoppedCapacityAlone(t *testing.T) {
	f := asked(1)
	f.World.ChangePool(func(p *cluster.Pool) {
		p.Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "100%"}}}
	})
	f.Consolidate(t, 12)
	filled(t, f, 0)
	if f.World.Launches != 1 {
		t.Errorf("%d instances were launched, want 1", f.World.Launches)
	}
	f.World.Stopped = nil
	f.Rest(t, 6)
	if left := f.World.DescribeLeftovers(); left != "" && len(f.World.Claims()) > 0 {
		t.Errorf("the buffer is gone, and there is %s", left)
	}
}
