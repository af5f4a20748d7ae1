package provision_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// fixed is a world whose one pool has a fixed number of nodes.
func fixed(replicas int64) *controllertest.Functions {
	w := controllertest.NewWorld()
	w.ChangePool(func(p *cluster.Pool) {
		p.Static, p.Replicas, p.Hash = true, replicas, "1"
		p.Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "1"}}}
	})
	return &controllertest.Functions{World: w}
}

func scaleTo(f *controllertest.Functions, replicas int64) {
	f.World.ChangePool(func(p *cluster.Pool) { p.Replicas = replicas })
}

// expectNodes fails unless that many claims are there, all of them with a node.
func expectNodes(t *testing.T, f *controllertest.Functions, want int) []cluster.Claim {
	t.Helper()
	controllertest.NoProblems(t, f.World)
	claims := f.World.Claims()
	if len(claims) != want {
		t.Errorf("%d nodes, want %d", len(claims), want)
	}
	return claims
}

func TestAStaticPoolHasItsNumberOfNodes(t *testing.T) {
	f := fixed(3)
	f.Rest(t, 4)
	expectNodes(t, f, 3)
	calls := f.World.Ports(fake.Fault{})
	if err := f.Provision(calls).Run(context.Background(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"list pending pods", "list claims", "list static pools"}; !slices.Equal(calls.Calls(), want) {
		t.Errorf("a pool that has its nodes costs the calls %q, want %q", calls.Calls(), want)
	}
	f.Consolidate(t, 5)
	expectNodes(t, f, 3) // although they are empty
	scaleTo(f, 5)
	f.Rest(t, 4)
	expectNodes(t, f, 5)
	scaleTo(f, 1)
	f.Rest(t, 4)
	expectNodes(t, f, 1)
	told := slices.ContainsFunc(f.World.Events("NodeClaim"), func(e string) bool { return strings.Contains(e, "has 5 nodes and is to have 1") })
	if !told {
		t.Errorf("nobody says why nodes went: %q", f.World.Events("NodeClaim"))
	}
	scaleTo(f, 0)
	f.Rest(t, 4)
	expectNodes(t, f, 0)
}

// A pool that sleeps now has nothing to be settled, and a pass asks for no more than where all is settled. Once it is
// awake it has its nodes.
func TestAStaticPoolThatSleepsCostsNothing(t *testing.T) {
	f := fixed(2)
	now := f.World.Now().UTC()
	f.World.ChangePool(func(p *cluster.Pool) {
		p.Disruption.SleepAt = fmt.Sprintf("%d %d * * *", now.Minute(), now.Hour())
		p.Disruption.SleepFor = time.Hour
	})
	f.World.Advance(time.Minute)
	calls := f.World.Ports(fake.Fault{})
	if err := f.Provision(calls).Run(t.Context(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"list pending pods", "list claims", "list static pools"}; !slices.Equal(calls.Calls(), want) {
		t.Errorf("a pool that sleeps costs the calls %q, want %q", calls.Calls(), want)
	}
	f.World.Advance(time.Hour)
	f.Rest(t, 4)
	expectNodes(t, f, 2)
}

// Pods that wait make no node in a static pool, and may run on those that it has.
func TestPodsUseAStaticPoolAndMakeNothingThere(t *testing.T) {
	f := fixed(1)
	f.Rest(t, 4)
	f.World.RunApp("web", 2, controllertest.PodOf(200, 200))
	f.Rest(t, 1)
	expectNodes(t, f, 1)
	f.World.RunApp("big", 1, controllertest.PodOf(6000, 6000))
	f.Rest(t, 2)
	if n := len(f.World.Claims()); n != 1 {
		t.Errorf("%d nodes, want 1", n)
	}
}

func TestAStaticPoolThatLostANodeGetsAnother(t *testing.T) {
	f := fixed(2)
	f.Rest(t, 4)
	gone := f.World.Claims()[0]
	if err := f.World.Ports(fake.Fault{}).DeleteClaim(context.Background(), gone); err != nil {
		t.Fatal(err)
	}
	f.Rest(t, 4)
	for _, c := range expectNodes(t, f, 2) {
		if c.Name == gone.Name {
			t.Errorf("claim %s is there still", gone.Name)
		}
	}
}

// One after the other, as the budget has it, and never fewer nodes than the pool is to have.
func TestDriftedNodesOfAStaticPoolAreReplaced(t *testing.T) {
	f := fixed(3)
	f.Rest(t, 4)
	old := map[string]bool{}
	for _, c := range f.World.Claims() {
		old[c.Name] = true
	}
	f.World.ChangePool(func(p *cluster.Pool) { p.Hash = "2" })
	for range 40 {
		f.Consolidate(t, 1)
		usable := 0
		for _, c := range f.World.Claims() {
			if c.Is("Initialized") && c.Deleting.IsZero() {
				usable++
			}
		}
		if usable < 3 {
			t.Fatalf("only %d nodes are left of 3", usable)
		}
		if n := len(f.World.Claims()); n > 5 {
			t.Fatalf("%d claims: more than one is replaced at a time", n)
		}
	}
	for _, c := range expectNodes(t, f, 3) {
		if old[c.Name] {
			t.Errorf("NodeClaim %s is of the old template still", c.Name)
		}
	}
}

// Whatever call of provision fails, before or after the deed and with or without the invocation: in the end the pool
// has its number.
func TestStaticPoolsSurviveEveryFault(t *testing.T) {
	for _, to := range []int64{4, 1} {
		controllertest.EachFault(t,
			func(t *testing.T) *controllertest.Functions {
				f := fixed(2)
				f.Rest(t, 4)
				scaleTo(f, to)
				return f
			},
			func(f *controllertest.Functions, p *fake.Ports) error {
				return f.Provision(p).Run(context.Background(), f.Once())
			},
			func(t *testing.T, f *controllertest.Functions) {
				f.ComeToRest(t)
				expectNodes(t, f, int(to))
			})
	}
}
