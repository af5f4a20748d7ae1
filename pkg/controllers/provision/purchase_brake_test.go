package provision_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// refusingWorld is a world in which kube-scheduler puts no pod on nodes of the type that is bought first, and empty nodes
// go. It runs for so many minutes, and returns how many instances of each type were bought.
func refusingWorld(t *testing.T, f *controllertest.Functions, minutes int) map[string]int {
	t.Helper()
	bought, typeOf := map[string]bool{}, map[string]int{}
	for end := f.World.Now().Add(time.Duration(minutes) * time.Minute); f.World.Now().Before(end); {
		f.Rest(t, 1)
		for _, c := range f.World.Claims() {
			if !bought[c.UID] && c.ProviderID != "" {
				bought[c.UID] = true
				typeOf[c.Labels["node.kubernetes.io/instance-type"]]++
			}
		}
		if err := f.Disrupt(f.World.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
	}
	return typeOf
}

// A type whose nodes kube-scheduler refuses for a reason that nobody knows is bought three times; then another one is, and
// pods of which none fits say why they wait. After an hour it is tried once more.
func TestTypesOfWhichNodesStayUnusedAreLeftOut(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.ChangePool(func(p *cluster.Pool) {
		p.Disruption = cluster.Disruption{Policy: "WhenEmpty", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "100%"}}}
	})
	refused := ""
	f.World.RefusePod = func(n cluster.Node) bool {
		typ := n.Labels["node.kubernetes.io/instance-type"]
		if refused == "" {
			refused = typ
		}
		return typ == refused
	}
	f.World.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	bought := refusingWorld(t, f, 20)
	if len(bought) != 2 || bought[refused] != 3 {
		t.Errorf("bought %v, want three of %s and another", bought, refused)
	}
	controllertest.NoProblems(t, f.World)
	tied := controllertest.PodOf(1500, 3000)
	tied.NodeSelector = map[string]string{"node.kubernetes.io/instance-type": refused}
	f.World.RunApp("tied", 1, tied)
	if later := refusingWorld(t, f, 30); later[refused] > 0 {
		t.Errorf("bought %v while it is left out", later)
	}
	want := "3 of its nodes took none of the pods that they were bought for; it is left out until"
	said := controllertest.EventsWith(f.World.Events("Pod"), "FailedScheduling")
	if !slices.ContainsFunc(said, func(e string) bool {
		return strings.Contains(e, want) && strings.Contains(e, "0/9 nodes are available: 9 no.)")
	}) {
		t.Errorf("pods say %q, want %q", said, want)
	}
	if later := refusingWorld(t, f, 45); later[refused] != 1 {
		t.Errorf("bought %v in the hour after, want one", later)
	}
	f.World.RefusePod = nil
	refusingWorld(t, f, 90)
	controllertest.NoProblems(t, f.World)
}
