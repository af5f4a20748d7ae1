package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner/pkg/controllers"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/requirements"
	"joiner/pkg/testing/fake"
)

// stubborn pods cannot be changed.
type stubborn struct{}

func (stubborn) TolerateNomination(context.Context, cluster.Pod, cluster.Taint) error {
	return errors.New("refused by a policy")
}

// holdingNodes brings pods up that like the same nodes: those of "any" come first by name, as the scheduler goes, and
// would take the room of those that must be in one zone.
func holdingNodes(t *testing.T, change func(*controllers.Provision)) *functions {
	t.Helper()
	f := &functions{w: newWorld()}
	f.w.ChangePool(func(p *cluster.Pool) {
		p.Requirements = p.Requirements.And(requirements.Of("node.kubernetes.io/instance-type", "m5.large"))
	})
	f.w.Run("any", 6, pattern(900, 1500))
	f.w.Run("zoned", 4, inZone("us-west-2a", pattern(950, 1500)))
	for range 20 { // short, so that a node is registered between the times it joins and gets Ready
		p := f.w.Ports(fake.Fault{})
		provision, lifecycle := f.provision(p), f.lifecycle(p)
		provision.Rules.NominatedPodsOnly, provision.Holds, lifecycle.Holds = true, p, p
		change(provision)
		if err := provision.Run(t.Context(), f.w.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := lifecycle.Run(t.Context(), f.w.Now().Add(2*time.Second)); err != nil {
			t.Fatal(err)
		}
		f.w.Tick(2 * time.Second)
	}
	noProblems(t, f.w)
	for _, c := range f.w.Claims() {
		if taints := f.w.Taints(c.NodeName); slices.ContainsFunc(taints, func(s string) bool { return strings.HasPrefix(s, "joiner.sh/nominated-pods-only") }) {
			t.Errorf("node %s is still held: %v", c.NodeName, taints)
		}
	}
	return f
}

// Each node gets the pods that it was launched for, and none is launched after the first plan.
func TestHeldNodesGetThePodsTheyWerePlannedFor(t *testing.T) {
	launches := func(change func(*controllers.Provision)) (n int, followed bool) {
		f := holdingNodes(t, change)
		followed = true
		s, err := f.w.Ports(fake.Fault{}).ReadSnapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range s.Claims {
			var on []string
			for _, p := range s.Pods {
				if p.NodeName == c.NodeName {
					on = append(on, p.Key())
				}
			}
			slices.Sort(on)
			followed = followed && strings.Join(on, ",") == c.Annotations["joiner.sh/nominated-pods"]
		}
		return len(s.Claims), followed
	}
	held, followed := launches(func(*controllers.Provision) {})
	free := 0 // it depends on which launch comes first, and with it on the names of the nodes
	for tries := 0; tries < 50 && free <= held; tries++ {
		n, _ := launches(func(p *controllers.Provision) { p.Rules.NominatedPodsOnly = false })
		free = max(free, n)
	}
	if fmt.Sprint(held, followed) != "5 true" || free <= held {
		t.Errorf("%d nodes when held, followed %t, and %d when free; want 5, true and more", held, followed, free)
	}
}

// Pods that cannot be changed run all the same, once the nodes are open.
func TestPodsThatCannotBeChangedWaitForOpenNodes(t *testing.T) {
	holdingNodes(t, func(p *controllers.Provision) { p.Holds = stubborn{} })
}
