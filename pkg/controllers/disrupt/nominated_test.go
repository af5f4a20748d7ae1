package disrupt_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// tight is a world with three large nodes whose pods fit exactly on small ones, if each goes where the plan has it.
func tight(t *testing.T) *controllertest.Functions {
	t.Helper()
	f := &controllertest.Functions{World: controllertest.NewWorld(), HoldNominated: true}
	types := func(names ...string) {
		f.World.ChangePool(func(p *cluster.Pool) {
			p.Requirements = requirements.NewSet(requirements.Of("node.kubernetes.io/instance-type", names...), requirements.Of("karpenter.sh/capacity-type", "on-demand"))
			p.Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "100%"}}}
		})
	}
	types("m5.2xlarge")
	f.World.RunApp("any", 12, controllertest.PodOf(900, 1000))
	f.World.RunApp("zoned", 9, controllertest.InZone("us-west-2a", controllertest.PodOf(1000, 1000)))
	f.Rest(t, 8)
	controllertest.NoProblems(t, f.World)
	types("m5.large", "m5.2xlarge")
	f.World.ScaleApp("any", 3)
	f.World.ScaleApp("zoned", 3)
	f.World.Advance(time.Second)
	return f
}

// heldFor lists what nodes are held for.
func heldFor(w *fake.World) (out []string) {
	for _, c := range w.Claims() {
		if text := c.Annotations[api.AnnotationNominatedOwners]; text != "" {
			out = append(out, text)
		}
	}
	slices.Sort(out)
	return out
}

// standing lists the apps of the pods on each node, as heldFor has them.
func standing(t *testing.T, f *controllertest.Functions) (out []string) {
	t.Helper()
	s, err := f.World.Ports(fake.Fault{}).ReadSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range s.Nodes {
		count := map[string]int{}
		for _, p := range s.Pods {
			if p.NodeName == n.Name && p.Owner != cluster.OwnerDaemonSet {
				count[p.Controller]++
			}
		}
		var line []string
		for _, app := range []string{"uid-any", "uid-zoned"} {
			if count[app] > 0 {
				line = append(line, fmt.Sprintf("%s=%d", app, count[app]))
			}
		}
		out = append(out, strings.Join(line, ","))
	}
	slices.Sort(out)
	return out
}

// The pods that come in the stead of those that are evicted get the nodes that were made for them, and none besides is
// made.
func TestReplacementsAreHeldForThePodsThatComeAfter(t *testing.T) {
	f := tight(t)
	f.Consolidate(t, 16)
	controllertest.NoProblems(t, f.World)
	held, stand := heldFor(f.World), standing(t, f)
	if len(held) != 3 || !slices.Equal(held, stand) || strings.Contains(f.World.Nodes(), "joiner.sh/nominated-pods-only") {
		t.Errorf("nodes are held for %q and have %q:\n%s", held, stand, f.World.Nodes())
	}
	f = tight(t)
	f.HoldNominated = false
	f.Consolidate(t, 16)
	controllertest.NoProblems(t, f.World)
	if held := heldFor(f.World); len(held) > 0 {
		t.Errorf("against the setting nodes are held for %q", held)
	}
}

// Whatever call of whichever pass fails, in the end every pod runs and no node is held.
func TestHeldReplacementsSurviveEveryFault(t *testing.T) {
	disrupt := func(f *controllertest.Functions, p *fake.Ports) error {
		return f.Disrupt(p).Run(context.Background(), f.Once())
	}
	provision := func(f *controllertest.Functions, p *fake.Ports) error {
		return f.Provision(p).Run(context.Background(), f.Once())
	}
	lifecycle := func(f *controllertest.Functions, p *fake.Ports) error {
		return f.Lifecycle(p).Run(context.Background(), f.World.Now().Add(10*time.Second))
	}
	for name, in := range map[string]struct {
		rounds int // before it
		run    func(f *controllertest.Functions, p *fake.Ports) error
	}{
		"replacements are made":   {1, disrupt},
		"nodes register":          {2, lifecycle},
		"nodes are to be drained": {3, disrupt},
		"pods wait":               {4, provision},
		"nodes are opened":        {4, lifecycle},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.EachFault(t,
				func(t *testing.T) *controllertest.Functions {
					f := tight(t)
					f.Consolidate(t, in.rounds)
					return f
				},
				in.run,
				func(t *testing.T, f *controllertest.Functions) {
					f.World.Advance(20 * time.Second)
					f.Consolidate(t, 12)
					f.World.Advance(2 * time.Hour)
					f.Consolidate(t, 12)
					controllertest.NoProblems(t, f.World)
					if nodes := f.World.Nodes(); strings.Contains(nodes, "joiner.sh/nominated-pods-only") || strings.Contains(nodes, "disrupted") {
						t.Errorf("a node stays held or tainted:\n%s", nodes)
					}
				})
		})
	}
}
