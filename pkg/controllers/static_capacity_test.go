package controllers_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"joiner/pkg/model/cluster"
	"joiner/pkg/testing/fake"
)

// fixed is a world whose one pool has a fixed number of nodes.
func fixed(replicas int64) *functions {
	w := newWorld()
	w.ChangePool(func(p *cluster.Pool) {
		p.Static, p.Replicas, p.Hash = true, replicas, "1"
		p.Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "1"}}}
	})
	return &functions{w: w}
}

func scaleTo(f *functions, replicas int64) {
	f.w.ChangePool(func(p *cluster.Pool) { p.Replicas = replicas })
}

// nodes fails unless that many claims are there, all of them with a node.
func (f *functions) nodes(t *testing.T, want int) []cluster.Claim {
	t.Helper()
	noProblems(t, f.w)
	claims := f.w.Claims()
	if len(claims) != want {
		t.Errorf("%d nodes, want %d", len(claims), want)
	}
	return claims
}

func TestAStaticPoolHasItsNumberOfNodes(t *testing.T) {
	f := fixed(3)
	f.rest(t, 4)
	f.nodes(t, 3)
	calls := f.w.Ports(fake.Fault{})
	if err := f.provision(calls).Run(context.Background(), f.once()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"list homeless pods", "list claims", "list static pools"}; !slices.Equal(calls.Calls(), want) {
		t.Errorf("a pool that has its nodes costs the calls %q, want %q", calls.Calls(), want)
	}
	f.consolidate(t, 5)
	f.nodes(t, 3) // although they are empty
	scaleTo(f, 5)
	f.rest(t, 4)
	f.nodes(t, 5)
	scaleTo(f, 1)
	f.rest(t, 4)
	f.nodes(t, 1)
	told := slices.ContainsFunc(f.w.Events("NodeClaim"), func(e string) bool { return strings.Contains(e, "has 5 nodes and is to have 1") })
	if !told {
		t.Errorf("nobody says why nodes went: %q", f.w.Events("NodeClaim"))
	}
	scaleTo(f, 0)
	f.rest(t, 4)
	f.nodes(t, 0)
}

// Pods that wait make no node in a static pool, and may run on those that it has.
func TestPodsUseAStaticPoolAndMakeNothingThere(t *testing.T) {
	f := fixed(1)
	f.rest(t, 4)
	f.w.Run("web", 2, pattern(200, 200))
	f.rest(t, 1)
	f.nodes(t, 1)
	f.w.Run("big", 1, pattern(6000, 6000))
	f.rest(t, 2)
	if n := len(f.w.Claims()); n != 1 {
		t.Errorf("%d nodes, want 1", n)
	}
}

func TestAStaticPoolThatLostANodeGetsAnother(t *testing.T) {
	f := fixed(2)
	f.rest(t, 4)
	gone := f.w.Claims()[0]
	if err := f.w.Ports(fake.Fault{}).DeleteClaim(context.Background(), gone); err != nil {
		t.Fatal(err)
	}
	f.rest(t, 4)
	for _, c := range f.nodes(t, 2) {
		if c.Name == gone.Name {
			t.Errorf("claim %s is there still", gone.Name)
		}
	}
}

// One after the other, as the budget has it, and never fewer nodes than the pool is to have.
func TestDriftedNodesOfAStaticPoolAreReplaced(t *testing.T) {
	f := fixed(3)
	f.rest(t, 4)
	old := map[string]bool{}
	for _, c := range f.w.Claims() {
		old[c.Name] = true
	}
	f.w.ChangePool(func(p *cluster.Pool) { p.Hash = "2" })
	for range 40 {
		f.consolidate(t, 1)
		usable := 0
		for _, c := range f.w.Claims() {
			if c.Is("Initialized") && c.Deleting.IsZero() {
				usable++
			}
		}
		if usable < 3 {
			t.Fatalf("only %d nodes are left of 3", usable)
		}
		if n := len(f.w.Claims()); n > 5 {
			t.Fatalf("%d claims: more than one is replaced at a time", n)
		}
	}
	for _, c := range f.nodes(t, 3) {
		if old[c.Name] {
			t.Errorf("NodeClaim %s is of the old template still", c.Name)
		}
	}
}

// Whatever call of provision fails, before or after the deed and with or without the invocation: in the end the pool
// has its number.
func TestStaticPoolsSurviveEveryFault(t *testing.T) {
	for _, to := range []int64{4, 1} {
		eachFault(t,
			func(t *testing.T) *functions {
				f := fixed(2)
				f.rest(t, 4)
				scaleTo(f, to)
				return f
			},
			func(f *functions, p *fake.Ports) error {
				return f.provision(p).Run(context.Background(), f.once())
			},
			func(t *testing.T, f *functions) {
				f.comeToRest(t)
				f.nodes(t, int(to))
			})
	}
}
