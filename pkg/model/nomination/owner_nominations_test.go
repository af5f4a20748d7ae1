package nomination_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/model/plan"
)

func of(controller string) func(*cluster.Pod) {
	return func(p *cluster.Pod) { p.Controller = controller }
}

func on(node string) func(*cluster.Pod) { return func(p *cluster.Pod) { p.NodeName = node } }

// notes shows what the launches are held for.
func notes(all []plan.Launch) (out []string) {
	for _, l := range all {
		out = append(out, l.Annotations["joiner.sh/nominated-owners"])
	}
	return out
}

// Replacements are held for as many pods of each controller as are planned there; each has a hold of its own.
func TestKeep(t *testing.T) {
	s := world(pod("a1", 100, of("a"), on("old")), pod("a2", 100, of("a"), on("old")), pod("b1", 200, of("b"), on("old")), pod("lone", 100, on("old")))
	find := func(key string) *cluster.Pod {
		i := slices.IndexFunc(s.Pods, func(p cluster.Pod) bool { return p.Key() == key })
		if i < 0 {
			return nil
		}
		return &s.Pods[i]
	}
	p := launches([]string{"default/a1", "default/a2", "default/b1"}, []string{"default/b1"})
	p.Launches[1].Annotations = map[string]string{"kept": "yes"}
	got := nomination.NominateOwners(find, "c0", p.Launches)
	if d := cmp.Diff([]string{"a=2,b=1", "b=1"}, notes(got)); d != "" || got[1].Annotations["kept"] != "yes" {
		t.Errorf("-want +got:\n%s", d)
	}
	if holds := startup(plan.Plan{Launches: got}); holds[0] == holds[1] || !strings.HasPrefix(holds[0], "joiner.sh/nominated-pods-only=") {
		t.Errorf("holds %v, want one for each", holds)
	}
	if p.Launches[0].Annotations != nil || p.Launches[0].Startup != nil || len(p.Launches[1].Annotations) != 1 {
		t.Errorf("the launches given were changed: %+v", p.Launches)
	}
	if other := nomination.NominateOwners(find, "c1", p.Launches); other[0].Startup[0] == got[0].Startup[0] {
		t.Error("another command has the same hold")
	}
}

// Nodes are held for pods that are made again, of several kinds, where the setting says so.
func TestCan(t *testing.T) {
	a, b, lone := pod("a1", 100, of("a")), pod("b1", 200, of("b")), pod("lone", 100)
	for _, c := range []struct {
		pods []*cluster.Pod
		hold bool
		want bool
	}{
		{[]*cluster.Pod{&a, &a, &b}, true, true},
		{[]*cluster.Pod{&a, &a, &b}, false, false},
		{[]*cluster.Pod{&a, &a}, true, false},
		{[]*cluster.Pod{&a, &b, &lone}, true, false},
		{nil, true, false},
	} {
		if got := nomination.CanNominateOwners(cluster.Settings{NominatedPodsOnly: c.hold}, c.pods); got != c.want {
			t.Errorf("%d pods, nominatedPodsOnly %t: %t", len(c.pods), c.hold, got)
		}
	}
}

// standby is a replacement with a node that is held for two pods of a and one of b.
func standby(name, note string) (cluster.Claim, cluster.Node) {
	c := held(name, "h-"+name)
	c.ProviderID, c.Annotations = "aws:///a/"+name, map[string]string{"joiner.sh/nominated-owners": note, "joiner.sh/replaces": "c0"}
	return c, cluster.Node{Name: "node-" + name, ProviderID: c.ProviderID, Ready: true, ReadySince: noon(), Taints: c.StartupTaints[1:]}
}

// Pods that wait come before those that are still to go, and those that tolerate the hold before all others.
func TestSuccessors(t *testing.T) {
	s := world(pod("a1", 100, of("a"), on("old")), pod("a2", 100, of("a"), on("old")), pod("a3", 100, of("a")), pod("a4", 100, of("a"), on("elsewhere")),
		pod("b1", 100, of("b"), on("node-r1")), pod("b2", 100, of("b")), pod("b3", 100, of("b"), func(p *cluster.Pod) { p.Holds = []string{"h-r2"} }))
	c1, n1 := standby("r1", "a=2,b=1,nonsense,c=x")
	c2, n2 := standby("r2", "b=1")
	s.Claims, s.Nodes = []cluster.Claim{c1, c2}, []cluster.Node{n1, n2, {Name: "old", Taints: []cluster.Taint{{Key: "karpenter.sh/disrupted", Effect: "NoSchedule"}}}, {Name: "elsewhere"}}
	nominated := func() (out []string) {
		for _, c := range nomination.ResolveOwnerNominations(s).Claims {
			out = append(out, c.Annotations["joiner.sh/nominated-pods"])
		}
		return out
	}
	if d := cmp.Diff([]string{"default/a1,default/a3", "default/b3"}, nominated()); d != "" {
		t.Errorf("nominated (-want +got):\n%s", d)
	}
	if c1.Annotations["joiner.sh/nominated-pods"] != "" {
		t.Error("the claims given were changed")
	}
	s.Nodes[0].Taints = nil // it was opened
	if d := cmp.Diff([]string{"", "default/b3"}, nominated()); d != "" {
		t.Errorf("nominated to an open node (-want +got):\n%s", d)
	}
}

// A node is held while the nodes that it replaces go, for two minutes from the beginning of their drain on; while a pod
// that it is for has waited for less than a minute; and never for more than a quarter of an hour.
func TestAwait(t *testing.T) {
	c, n := standby("r1", "a=1")
	goes := cluster.Claim{Name: "old", Annotations: map[string]string{"joiner.sh/disruption-command": `{"id":"c0"}`}}
	other := cluster.Claim{Name: "old", Annotations: map[string]string{"joiner.sh/disruption-command": `{"id":"c1"}`}}
	deleted := func(at time.Duration) cluster.Claim {
		x := goes
		x.Deleting = noon().Add(at)
		return x
	}
	made := func(at time.Duration, controller string) cluster.Pod {
		return pod("new", 100, of(controller), func(p *cluster.Pod) { p.Created = noon().Add(at) })
	}
	const now = 10 * time.Minute
	for name, x := range map[string]struct {
		at   time.Duration
		with []cluster.Claim
		pods []cluster.Pod
		want bool
	}{
		"the command waits for others":     {now, []cluster.Claim{goes}, nil, true},
		"another command":                  {now, []cluster.Claim{other}, nil, false},
		"nothing":                          {now, nil, nil, false},
		"the drain has begun":              {now, []cluster.Claim{deleted(now - 119*time.Second)}, nil, true},
		"the drain takes long":             {now, []cluster.Claim{deleted(now - 2*time.Minute)}, nil, false},
		"a pod of it waits":                {now, nil, []cluster.Pod{made(now-59*time.Second, "a")}, true},
		"a pod of it waits for long":       {now, nil, []cluster.Pod{made(now-time.Minute, "a")}, false},
		"a pod of another waits":           {now, nil, []cluster.Pod{made(now, "b")}, false},
		"just before a quarter of an hour": {15*time.Minute - time.Second, []cluster.Claim{goes}, nil, true},
		"after a quarter of an hour":       {15 * time.Minute, []cluster.Claim{goes}, nil, false},
	} {
		s := cluster.Snapshot{Now: noon().Add(x.at), Claims: append(slices.Clone(x.with), c), Pods: x.pods}
		if got := nomination.FindOwnerNominations(s).AwaitsPods(c, n); got != x.want {
			t.Errorf("%s: await %t", name, got)
		}
	}
	c.Annotations = map[string]string{"joiner.sh/replaces": "c0"}
	if nomination.FindOwnerNominations(cluster.Snapshot{Now: noon(), Claims: []cluster.Claim{goes}}).AwaitsPods(c, n) {
		t.Error("a replacement that is held for nobody waits")
	}
}
