package provision_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/controllers/provision"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// stubborn pods cannot be changed.
type stubborn struct{}

func (stubborn) TolerateNomination(context.Context, cluster.Pod, cluster.Taint) error {
	return errors.New("refused by a policy")
}

// holdingNodes brings pods up that like the same nodes: those of "any" come first by name, as the scheduler goes, and
// would take the room of those that must be in one zone.
func holdingNodes(t *testing.T, change func(*provision.Controller)) *controllertest.Functions {
	t.Helper()
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.ChangePool(func(p *cluster.Pool) {
		p.Requirements = p.Requirements.And(requirements.Of("node.kubernetes.io/instance-type", "m5.large"))
	})
	f.World.RunApp("any", 6, controllertest.PodOf(900, 1500))
	f.World.RunApp("zoned", 4, controllertest.InZone("us-west-2a", controllertest.PodOf(950, 1500)))
	for range 20 { // short, so that a node is registered between the times it joins and gets Ready
		p := f.World.Ports(fake.Fault{})
		provision, lifecycle := f.Provision(p), f.Lifecycle(p)
		provision.Rules.NominatedPodsOnly, provision.Holds, lifecycle.Holds = true, p, p
		change(provision)
		if err := provision.Run(t.Context(), f.World.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := lifecycle.Run(t.Context(), f.World.Now().Add(2*time.Second)); err != nil {
			t.Fatal(err)
		}
		f.World.Advance(2 * time.Second)
	}
	controllertest.NoProblems(t, f.World)
	for _, c := range f.World.Claims() {
		if taints := f.World.TaintsOf(c.NodeName); slices.ContainsFunc(taints, func(s string) bool { return strings.HasPrefix(s, "joiner.sh/nominated-pods-only") }) {
			t.Errorf("node %s is still held: %v", c.NodeName, taints)
		}
	}
	return f
}

// Each node gets the pods that it was launched for, and none is launched after the first plan.
func TestHeldNodesGetThePodsTheyWerePlannedFor(t *testing.T) {
	launches := func(change func(*provision.Controller)) (n int, followed bool) {
		f := holdingNodes(t, change)
		followed = true
		s, err := f.World.Ports(fake.Fault{}).ReadSnapshot(t.Context())
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
	held, followed := launches(func(*provision.Controller) {})
	free := 0 // it depends on which launch comes first, and with it on the names of the nodes
	for tries := 0; tries < 50 && free <= held; tries++ {
		n, _ := launches(func(c *provision.Controller) { c.Rules.NominatedPodsOnly = false })
		free = max(free, n)
	}
	if fmt.Sprint(held, followed) != "5 true" || free <= held {
		t.Errorf("%d nodes when held, followed %t, and %d when free; want 5, true and more", held, followed, free)
	}
}

// Pods that cannot be changed run all the same, once the nodes are open.
func TestPodsThatCannotBeChangedWaitForOpenNodes(t *testing.T) {
	holdingNodes(t, func(c *provision.Controller) { c.Holds = stubborn{} })
}
