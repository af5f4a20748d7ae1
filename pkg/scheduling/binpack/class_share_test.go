package binpack

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/testing/manypods"
)

// A tenant with 1,000 pods, each as much work as a pod may be, costs the pass no more than its part, which is counted.
// The pods of all others get nodes in that pass; his that are most work get none, with the reason.
func TestAHostileTenantDelaysNobody(t *testing.T) {
	for _, kind := range manypods.HostileKinds() {
		t.Run(kind, func(t *testing.T) {
			s := manypods.Services(t, 100)
			others := len(s.Pods)
			s.Pods = append(s.Pods, manypods.Hostile(kind, 1000)...)
			s.Rules.PackingIterations, s.Rules.DemandMilliseconds = cluster.NoIterations, 300
			var work time.Duration
			p := packing.NewSharedDemand(s)
			for i, x := range p.Classes.MeasureWork() {
				if p.Classes.List[i].Pod.Namespace == "evil" {
					work += x
				} else {
					others -= len(p.Classes.List[i].Pods)
				}
			}
			if work > 300*time.Millisecond || others != 0 {
				t.Fatalf("%v of the tenant's work, %d of his pods set aside, and %d of others", work, len(p.Classes.Aside), others)
			}
			if testing.Short() && kind != "terms" && kind != "resources" {
				return
			}
			for _, u := range PodsFrom(s, ResolveOfferings(s)).Unplaced {
				if !strings.HasPrefix(u.Pod, "evil/") {
					t.Errorf("%s has no place: %s", u.Pod, u.Message())
				} else if p.Classes.Aside[u.Pod] != "" && !strings.Contains(u.Message(), "the pods of namespace evil that wait are about ") {
					t.Errorf("%s is told %q", u.Pod, u.Message())
				}
			}
		})
	}
}

// 200 DaemonSets, each as much work as one may be, are little work and memory for a pass: half a GiB is all that a
// function has, and no pods of any of them are counted.
func TestDaemonSetsOfATenantAreLittleWork(t *testing.T) {
	for _, kind := range []string{"ports", "resources", "terms"} {
		s := manypods.Services(t, 100)
		for _, d := range manypods.Hostile(kind, 200) {
			d.Owner, d.Phase, d.Unscheduled = cluster.OwnerDaemonSet, "", false
			d.Need.CPU, d.Need.Memory = 1, resources.MiB
			s.Daemons = append(s.Daemons, d)
		}
		s.Rules.PackingIterations = cluster.NoIterations
		sells := ResolveOfferings(s)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p := PodsFrom(s, sells)
		runtime.ReadMemStats(&after)
		mib := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: %d MiB allocated", kind, mib)
		if mib > 200 || len(p.Unplaced) > 0 {
			t.Errorf("%s: %d MiB allocated, %d pods without a place", kind, mib, len(p.Unplaced))
		}
	}
}

// 200 pods that keep away from DaemonSets, which run elsewhere, take about as long as those that keep away from none.
func TestKeepingAwayFromDaemonSetsIsLittleWork(t *testing.T) {
	took := func(far string) time.Duration {
		s := manypods.Services(t, 100)
		for i, d := range manypods.Hostile("sizes", 200) {
			d.Owner, d.Phase, d.Unscheduled = cluster.OwnerDaemonSet, "", false
			if d.Need.CPU, d.Need.Memory = 1, resources.MiB; i%2 == 0 {
				d.Labels, d.NodeSelector = map[string]string{"far": "yes"}, map[string]string{instancetypes.LabelArch: "none"}
			}
			s.Daemons = append(s.Daemons, d)
		}
		for _, p := range manypods.Hostile("one term", 200) {
			p.AntiAffinity = []cluster.AffinityTerm{{Key: podclass.LabelHost,
				Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("far", far)}}}}
			s.Pods = append(s.Pods, p)
		}
		s.Rules.PackingIterations = cluster.NoIterations
		sells, began := ResolveOfferings(s), time.Now()
		if p := PodsFrom(s, sells); len(p.Unplaced) > 0 {
			t.Errorf("%d pods have no place", len(p.Unplaced))
		}
		return time.Since(began)
	}
	if none, all := min(took("no"), took("no")), min(took("yes"), took("yes")); all > 6*none {
		t.Errorf("%s, and %s beside DaemonSets that run elsewhere", none, all)
	}
}

// Questions about the same cluster leave out the same pods, however few of them they are about.
func TestWhatIfLeavesOutTheSame(t *testing.T) {
	s := manypods.Services(t, 50)
	s.Pods = append(s.Pods, manypods.Hostile("terms", 60)...)
	s.Rules.DemandMilliseconds, s.Rules.PackingIterations = 100, cluster.NoIterations
	w := newWhatIf(s, ResolveOfferings(s))
	few := s
	few.Pods = s.Pods[100:]
	left := 0
	for _, u := range w.PlanPods(few).Unplaced {
		if strings.Contains(u.Message(), "more than its share of one pass") {
			left++
		}
	}
	if left != 7 { // of the 3 that are kept of all 60, all are in the question
		t.Errorf("%d of 10 pods are left out of the question, want 7", left)
	}
}

// runningPods are n pods of one tenant on nodes, each with 32 terms of anti-affinity about the pods of all namespaces,
// no two alike.
func runningPods(s *cluster.Snapshot, n int, selects func(i, j int) *cluster.Selector) {
	for i := range n {
		p := cluster.Pod{Namespace: "evil", Name: fmt.Sprintf("run-%d", i), UID: fmt.Sprint(i), Phase: "Running", NodeName: fmt.Sprintf("node-%d", i%20),
			Need: resources.List{Pods: 1}}
		for j := range 32 {
			p.AntiAffinity = append(p.AntiAffinity, cluster.AffinityTerm{Key: instancetypes.LabelZone, Selector: selects(i, j), NamespaceSelector: &cluster.Selector{}})
		}
		s.Pods = append(s.Pods, p)
	}
	s.Namespaces = []cluster.Namespace{{Name: "default"}, {Name: "evil"}}
	for i := range 20 {
		s.Nodes = append(s.Nodes, cluster.Node{Name: fmt.Sprintf("node-%d", i), Ready: true, Labels: map[string]string{instancetypes.LabelZone: "us-west-2a", podclass.LabelHost: fmt.Sprintf("node-%d", i)},
			Allocatable: resources.List{CPU: 4000, Memory: 16 << 30, Pods: 110}})
	}
}

// Of the terms of running pods each namespace's are looked at up to its share; a node with others takes nobody. Those of
// a tenant who has few are all kept.
func TestTermsOfRunningPodsAreShared(t *testing.T) {
	s := manypods.Services(t, 100)
	runningPods(&s, 100, func(i, j int) *cluster.Selector {
		return &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", fmt.Sprintf("none-%d-%d", i, j))}}
	})
	s.Nodes = append(s.Nodes, cluster.Node{Name: "far", Ready: true, Labels: map[string]string{instancetypes.LabelZone: "us-west-2a", podclass.LabelHost: "far"},
		Allocatable: resources.List{CPU: 4000, Memory: 16 << 30, Pods: 110}})
	s.Pods = append(s.Pods, cluster.Pod{Namespace: "blog", Name: "lone", UID: "lone", Phase: "Running", NodeName: "far", Need: resources.List{Pods: 1},
		AntiAffinity: []cluster.AffinityTerm{{Key: podclass.LabelHost, Namespaces: []string{"default"}, Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", "app-0000")}}}}})
	s.Rules.PackingIterations = cluster.NoIterations
	problem := packing.NewProblem(s, ResolveOfferings(s))
	skipped := map[string]int{}
	for id, is := range problem.Topology.Away {
		if is.Skipped {
			skipped[id.Namespace]++
		}
	}
	if skipped["evil"] != 3200-499 || skipped["blog"] != 0 {
		t.Errorf("skipped %v, want 2701 of evil", skipped)
	}
	p := PodsFrom(s, ResolveOfferings(s))
	for _, u := range p.Unplaced {
		t.Errorf("%s has no place: %s", u.Pod, u.Message())
	}
	told := []plan.UnreadPod{{Pod: "evil/run-15", Node: "node-15", Terms: 3200, Read: 499}, {Pod: "evil/run-16", Node: "node-16", Terms: 3200, Read: 499},
		{Pod: "evil/run-17", Node: "node-17", Terms: 3200, Read: 499}, {Pod: "evil/run-18", Node: "node-18", Terms: 3200, Read: 499},
		{Pod: "evil/run-19", Node: "node-19", Terms: 3200, Read: 499}}
	if d := cmp.Diff(told, p.Unread); d != "" {
		t.Errorf("pods that are told of it (-want +got):\n%s", d)
	}
	for _, e := range p.Existing {
		if strings.HasPrefix(e.Node, "node-") || e.Node == "far" && strings.HasPrefix(e.Pod, "default/app-0000") {
			t.Errorf("%s is to go to %s", e.Pod, e.Node)
		}
	}
}
