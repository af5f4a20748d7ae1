package nomination_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func pod(name string, cpu int64, change ...func(*cluster.Pod)) cluster.Pod {
	p := cluster.Pod{Namespace: "default", Name: name, UID: "uid-" + name, Phase: "Pending", Need: resources.List{CPU: cpu}}
	for _, c := range change {
		c(&p)
	}
	return p
}

func world(pods ...cluster.Pod) cluster.Snapshot {
	return cluster.Snapshot{Now: noon(), Pods: pods, Rules: cluster.Settings{NominatedPodsOnly: true}}
}

// startup shows the holds of a plan's launches, one word each.
func startup(p plan.Plan) (out []string) {
	for _, l := range p.Launches {
		word := "free"
		for _, t := range l.Startup {
			word = t.String()
		}
		out = append(out, word)
	}
	return out
}

func launches(pods ...[]string) (p plan.Plan) {
	for _, names := range pods {
		p.Launches = append(p.Launches, plan.Launch{Pods: names})
	}
	return p
}

func TestUnlikePodsGetTheirNodesHeld(t *testing.T) {
	s := world(pod("a", 100), pod("b", 200), pod("old", 100, func(p *cluster.Pod) { p.NodeName = "n" }),
		pod("air", 100, func(p *cluster.Pod) { p.Virtual = true }))
	given := launches([]string{"default/a"}, []string{"default/b", "default/air"}, []string{"default/a", "default/old"}, []string{"default/air"})
	got := startup(nomination.NominatePods(s, given))
	want := []string{"joiner.sh/nominated-pods-only=9efb36117d50566e:NoSchedule", "joiner.sh/nominated-pods-only=077e5af8a7383d34:NoSchedule", "free", "free"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("holds (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"free", "free", "free", "free"}, startup(given)); d != "" {
		t.Errorf("the plan given was changed:\n%s", d)
	}
	s.Rules.NominatedPodsOnly = false
	if got := startup(nomination.NominatePods(s, given)); slices.ContainsFunc(got, func(w string) bool { return w != "free" }) {
		t.Errorf("held against the setting: %v", got)
	}
}

// Pods that differ in their names alone may change places, those on their way to earlier nodes included.
func TestLikePodsNeedNoHold(t *testing.T) {
	s := world(pod("a", 100), pod("b", 100, func(p *cluster.Pod) { p.Holds = []string{"x"} }), pod("c", 200))
	p := launches([]string{"default/a"}, []string{"default/b"})
	if got := startup(nomination.NominatePods(s, p)); !slices.Equal(got, []string{"free", "free"}) {
		t.Errorf("like pods: %v", got)
	}
	p.Existing = []plan.Placement{{Pod: "default/c", Node: "n"}}
	if got := startup(nomination.NominatePods(s, p)); slices.Contains(got, "free") {
		t.Errorf("with another kind on its way: %v", got)
	}
}

func TestAPassHoldsNoMoreThanItCanWrite(t *testing.T) {
	var names []string
	pods := []cluster.Pod{pod("z", 7)}
	for i := range nomination.MostPods {
		pods = append(pods, pod(fmt.Sprint("p", i), 100))
		names = append(names, fmt.Sprint("default/p", i))
	}
	got := startup(nomination.NominatePods(world(pods...), launches(names, []string{"default/z"})))
	if got[0] == "free" || got[1] != "free" {
		t.Errorf("holds %v, want the first alone", got)
	}
}

func held(name, value string) cluster.Claim {
	return cluster.Claim{Name: name, StartupTaints: []cluster.Taint{{Key: "cni", Effect: "NoSchedule"},
		{Key: "joiner.sh/nominated-pods-only", Value: value, Effect: "NoSchedule"}}}
}

// Only pods without a node, planned for a node that is still held, that do not tolerate it yet, and have not collected
// too many.
func TestWhoIsLetOntoHeldNodes(t *testing.T) {
	holds := func(values ...string) func(*cluster.Pod) { return func(p *cluster.Pod) { p.Holds = values } }
	s := world(pod("new", 1), pod("has", 1, holds("one")), pod("bound", 1, func(p *cluster.Pod) { p.NodeName = "n" }),
		pod("air", 1, func(p *cluster.Pod) { p.Virtual = true }), pod("full", 1, holds("1", "2", "3", "4", "5", "6", "7", "8")),
		pod("late", 1, holds("one")), pod("opened", 1), pod("closed", 1), pod("plain", 1))
	s.Claims = []cluster.Claim{held("c1", "one"), held("c2", "two"), held("c3", "three"), {Name: "c4"}, held("c5", "five")}
	s.Claims[1].ProviderID, s.Claims[2].ProviderID = "aws:///a/i-2", "aws:///a/i-3"
	s.Claims[4].Deleting = noon()
	s.Nodes = []cluster.Node{{Name: "n2", ProviderID: "aws:///a/i-2"},
		{Name: "n3", ProviderID: "aws:///a/i-3", Taints: []cluster.Taint{{Key: "joiner.sh/nominated-pods-only", Value: "three", Effect: "NoSchedule"}}}}
	var p plan.Plan
	for _, x := range []struct{ pod, node string }{{"new", "c1"}, {"has", "c1"}, {"bound", "c1"}, {"air", "c1"}, {"full", "c1"}, {"late", "n3"},
		{"opened", "n2"}, {"closed", "c5"}, {"plain", "c4"}} {
		p.Existing = append(p.Existing, plan.Placement{Pod: "default/" + x.pod, Node: x.node})
	}
	var got []string
	for _, w := range nomination.TolerationsNeeded(s, p) {
		got = append(got, w.Pod.Name+" "+w.Taint.String())
	}
	want := []string{"new joiner.sh/nominated-pods-only=one:NoSchedule", "late joiner.sh/nominated-pods-only=three:NoSchedule"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("wishes (-want +got):\n%s", d)
	}
}

// Held nodes boot alike, and registration tells them apart; nothing but the boot's hold is replaced.
func TestHoldAtBoot(t *testing.T) {
	c := held("c1", "one")
	boot := nomination.AtBoot(c.StartupTaints)
	if got := fmt.Sprint(boot); got != "[cni:NoSchedule joiner.sh/nominated-pods-only=new:NoSchedule]" {
		t.Errorf("at boot %s", got)
	}
	if got := nomination.TaintsOnRegistration(boot, c); !slices.Equal(got, c.StartupTaints) {
		t.Errorf("registered %v", got)
	}
	if got := fmt.Sprint(nomination.TaintsOnRegistration(boot, cluster.Claim{}), nomination.TaintsOnRegistration(held("", "two").StartupTaints, c)); got !=
		"[cni:NoSchedule joiner.sh/nominated-pods-only=new:NoSchedule] [cni:NoSchedule joiner.sh/nominated-pods-only=two:NoSchedule]" {
		t.Errorf("left alone: %s", got)
	}
}
