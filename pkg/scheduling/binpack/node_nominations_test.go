package binpack

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// Only claims whose nodes the scheduler cannot have filled yet are told, and only what they do not know.
func TestWhoIsNominated(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	claim := func(name, pods string) cluster.Claim {
		return cluster.Claim{Name: name, Annotations: map[string]string{"joiner.sh/nominated-pods": pods}}
	}
	node := func(name string, ready time.Duration) cluster.Node {
		return cluster.Node{Name: "n-" + name, ProviderID: name, Ready: ready > 0, ReadySince: now.Add(-ready)}
	}
	s := cluster.Snapshot{Now: now}
	for _, name := range []string{"young", "settled", "marked"} {
		c := claim(name, "")
		c.ProviderID = name
		s.Claims = append(s.Claims, c)
	}
	s.Claims[2].Deleting = now
	// since it was initialized
	for name, since := range map[string]time.Duration{"binding": 9 * time.Second, "bound": 10 * time.Second} {
		c := claim(name, "")
		c.ProviderID, c.Conditions = name, []cluster.Condition{{Type: "Initialized", Status: "True", Since: now.Add(-since)}}
		s.Claims = append(s.Claims, c)
		s.Nodes = append(s.Nodes, cluster.Node{Name: "n-" + name, ProviderID: name})
	}
	s.Claims = append(s.Claims, claim("knows", "default/a,default/b"), claim("learns", "default/a"), cluster.Claim{Name: "bare"}, claim("nobody", "default/a"))
	s.Nodes = append(s.Nodes, node("young", 5*time.Second), node("settled", 15*time.Second), node("marked", 0), cluster.Node{Name: "alone"})
	var p plan.Plan
	for _, n := range []string{"n-young", "n-settled", "n-marked", "n-binding", "n-bound", "alone", "bare"} {
		p.Existing = append(p.Existing, plan.Placement{Pod: "default/x", Node: n})
	}
	for _, x := range []string{"knows b", "learns web-10", "learns web-2"} {
		var node, pod string
		_, _ = fmt.Sscan(x, &node, &pod)
		p.Existing = append(p.Existing, plan.Placement{Pod: "default/" + pod, Node: node})
	}
	got := map[string]string{}
	for _, n := range ListNominations(s, p) {
		got[n.Claim.Name] = n.Annotations()["joiner.sh/nominated-pods"]
	}
	want := map[string]string{"young": "default/x", "binding": "default/x", "bare": "default/x", "learns": "default/web-2,default/web-10"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("nominations (-want +got):\n%s", d)
	}
}

// A pass writes on a hundred claims at most.
func TestNominationsHaveALimit(t *testing.T) {
	var s cluster.Snapshot
	var p plan.Plan
	for i := range 101 {
		name := fmt.Sprint("c", i)
		s.Claims = append(s.Claims, cluster.Claim{Name: name})
		p.Existing = append(p.Existing, plan.Placement{Pod: "default/" + name, Node: name})
	}
	if n := len(ListNominations(s, p)); n != 100 {
		t.Errorf("%d claims", n)
	}
}

// A held replacement gets the pods it is nominated for however long it is ready, and needs not be told.
func TestHeldReplacementsAreAwaited(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	c := cluster.Claim{Name: "r", ProviderID: "r", Annotations: map[string]string{"joiner.sh/nominated-owners": "a=1"}}
	n := cluster.Node{Name: "n-r", ProviderID: "r", Ready: true, ReadySince: now.Add(-5 * time.Minute), Taints: []cluster.Taint{{Key: "joiner.sh/nominated-pods-only", Value: "h", Effect: "NoSchedule"}}}
	if !(cluster.StateNode{Node: &n, Claim: &c}).IsAwaitingPods(now) {
		t.Error("held, and not awaited")
	}
	s := cluster.Snapshot{Now: now, Claims: []cluster.Claim{c}, Nodes: []cluster.Node{n}}
	if got := ListNominations(s, plan.Plan{Existing: []plan.Placement{{Pod: "default/x", Node: "n-r"}}}); len(got) > 0 {
		t.Errorf("it is told of %v", got)
	}
	n.Taints = nil
	if (cluster.StateNode{Node: &n, Claim: &c}).IsAwaitingPods(now) {
		t.Error("opened, and awaited")
	}
}
