package provision_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers/provision"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

const atTwo = "maxNodes is 2, and 2 nodes are there or on their way"

// What the ceiling does not allow is on the pod, on the NodePool and in a metric.
func TestTheCeilingIsTold(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld(), Ceiling: cluster.Ceiling{Nodes: 2}}
	f.World.RunApp("web", 3, controllertest.InZone("us-west-2b", controllertest.PodOf(7_000, 3000)))
	got := &controllertest.MetricLines{}
	c := f.Provision(f.World.Ports(fake.Fault{}))
	c.Metrics = got
	if err := c.Run(t.Context(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if n := len(f.World.Claims()); n != 2 {
		t.Errorf("%d NodeClaims, want 2", n)
	}
	told := func(kind, reason, message string) bool {
		return slices.ContainsFunc(f.World.Events(kind), func(e string) bool {
			return strings.Contains(e, reason) && strings.Contains(e, message)
		})
	}
	if !told("Pod", "FailedScheduling", atTwo) || !told("NodePool", "CeilingReached", "nodes are not launched: "+atTwo) {
		t.Errorf("events on pods %q and NodePools %q", f.World.Events("Pod"), f.World.Events("NodePool"))
	}
	if !strings.Contains(strings.Join(got.All, "\n"), `"joiner_launches_held_count":1`) {
		t.Errorf("measured %q", got.All)
	}
}

// throttled is EC2 as it refuses every launch.
type throttled struct{ provision.Launcher }

func (throttled) LaunchInstances(context.Context, launch.Order, string) (cluster.Instance, []instancetypes.UnavailableOffering, error) {
	return cluster.Instance{}, nil, errors.New("RequestLimitExceeded")
}

// A NodeClaim that somebody stores above the ceiling is not launched until there is room, and a lower ceiling ends
// nothing.
func TestAStoredClaimAboveTheCeilingWaits(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.RunApp("web", 2, controllertest.InZone("us-west-2b", controllertest.PodOf(7_000, 3000)))
	f.Rest(t, 4)
	f.Ceiling.Nodes = 1
	f.World.RunApp("more", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(7_000, 3000)))
	controller := f.Provision(f.World.Ports(fake.Fault{}))
	controller.Rules.Ceiling, controller.Fleet = cluster.Ceiling{}, throttled{controller.Fleet}
	if err := controller.Run(t.Context(), f.Once()); err == nil || !strings.Contains(err.Error(), "RequestLimitExceeded") {
		t.Fatal(err)
	}
	f.World.Advance(20 * time.Second)
	f.Rest(t, 2)
	var waits []cluster.Claim
	for _, c := range f.World.Claims() {
		if c.ProviderID == "" {
			waits = append(waits, c)
		}
	}
	if len(waits) != 1 || len(f.World.Claims()) != 3 {
		t.Fatalf("%d of %d NodeClaims wait, want 1 of 3", len(waits), len(f.World.Claims()))
	}
	if k := waits[0].Condition(v1.ConditionLaunched); k.Reason != "CeilingReached" ||
		k.Message != "maxNodes is 1, and 2 nodes are there or on their way" {
		t.Errorf("it says %+v", k)
	}
	f.Ceiling.Nodes = 3
	f.Rest(t, 4)
	for _, c := range f.World.Claims() {
		if c.ProviderID == "" {
			t.Errorf("%s is not launched below the ceiling: %+v", c.Name, c.Condition(v1.ConditionLaunched))
		}
	}
	controllertest.NoProblems(t, f.World)
}

// While the API server refuses requests as too many, each pass launches half of what the last one did.
func TestLaunchesSlowDownWithTheAPIServer(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	c := f.Provision(f.World.Ports(fake.Fault{}))
	refused := 0
	c.Refusals = func() int { return refused }
	launched := func(app string) int {
		before := len(f.World.Claims())
		f.World.RunApp(app, 8, controllertest.InZone("us-west-2b", controllertest.PodOf(7_000, 3000)))
		if err := c.Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		return len(f.World.Claims()) - before
	}
	if n := launched("web"); n != 8 {
		t.Errorf("%d nodes at full speed, want 8", n)
	}
	refused = 1
	if n := launched("more"); n != 4 {
		t.Errorf("%d nodes after a refusal, want 4", n)
	}
}
