package controllers_test

import (
	"context"
	"fmt"
	api "joiner/pkg/api/v1"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/requirements"
	"joiner/pkg/testing/fake"
)

// tight is a world with three large nodes whose pods fit exactly on small ones, if each goes where the plan has it.
func tight(t *testing.T) *functions {
	t.Helper()
	f := &functions{w: newWorld(), hold: true}
	types := func(names ...string) {
		f.w.ChangePool(func(p *cluster.Pool) {
			p.Requirements = requirements.NewSet(requirements.Of("node.kubernetes.io/instance-type", names...), requirements.Of("karpenter.sh/capacity-type", "on-demand"))
			p.Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "100%"}}}
		})
	}
	types("m5.2xlarge")
	f.w.Run("any", 12, pattern(900, 1000))
	f.w.Run("zoned", 9, inZone("us-west-2a", pattern(1000, 1000)))
	f.rest(t, 8)
	noProblems(t, f.w)
	types("m5.large", "m5.2xlarge")
	f.w.Scale("any", 3)
	f.w.Scale("zoned", 3)
	f.w.Tick(time.Second)
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
func standing(t *testing.T, f *functions) (out []string) {
	t.Helper()
	s, err := f.w.Ports(fake.Fault{}).ReadSnapshot(t.Context())
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
	f.consolidate(t, 16)
	noProblems(t, f.w)
	held, stand := heldFor(f.w), standing(t, f)
	if len(held) != 3 || !slices.Equal(held, stand) || strings.Contains(f.w.Nodes(), "joiner.sh/nominated-pods-only") {
		t.Errorf("nodes are held for %q and have %q:\n%s", held, stand, f.w.Nodes())
	}
	f = tight(t)
	f.hold = false
	f.consolidate(t, 16)
	noProblems(t, f.w)
	if held := heldFor(f.w); len(held) > 0 {
		t.Errorf("against the setting nodes are held for %q", held)
	}
}

// Whatever call of whichever pass fails, in the end every pod runs and no node is held.
func TestHeldReplacementsSurviveEveryFault(t *testing.T) {
	disrupt := func(f *functions, p *fake.Ports) error {
		return f.disrupt(p).Run(context.Background(), f.once())
	}
	provision := func(f *functions, p *fake.Ports) error {
		return f.provision(p).Run(context.Background(), f.once())
	}
	lifecycle := func(f *functions, p *fake.Ports) error {
		return f.lifecycle(p).Run(context.Background(), f.w.Now().Add(10*time.Second))
	}
	for name, in := range map[string]struct {
		rounds int // before it
		run    func(f *functions, p *fake.Ports) error
	}{
		"replacements are made":   {1, disrupt},
		"nodes register":          {2, lifecycle},
		"nodes are to be drained": {3, disrupt},
		"pods wait":               {4, provision},
		"nodes are opened":        {4, lifecycle},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachFault(t,
				func(t *testing.T) *functions {
					f := tight(t)
					f.consolidate(t, in.rounds)
					return f
				},
				in.run,
				func(t *testing.T, f *functions) {
					f.w.Tick(20 * time.Second)
					f.consolidate(t, 12)
					f.w.Tick(2 * time.Hour)
					f.consolidate(t, 12)
					noProblems(t, f.w)
					if nodes := f.w.Nodes(); strings.Contains(nodes, "joiner.sh/nominated-pods-only") || strings.Contains(nodes, "disrupted") {
						t.Errorf("a node stays held or tainted:\n%s", nodes)
					}
				})
		})
	}
}
