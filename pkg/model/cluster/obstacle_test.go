package cluster

import (
	"testing"
	"time"

	"joiner.sh/pkg/model/requirements"
)

// What a PodDisruptionBudget has against the eviction of a pod: now, and for as long as it is as it is.
func TestWhichBudgetsHoldPodsBack(t *testing.T) {
	none := PodDisruptionBudget{Namespace: "default", Selector: selects("app", "a")}
	never := none
	never.FullyBlocking = true
	always := never
	always.AlwaysAllowUnready = true
	enough := never
	enough.HealthyEnough = true
	one, other, elsewhere, empty := none, none, never, never
	one.DisruptionsAllowed = 1
	other.Selector, elsewhere.Namespace, empty.Selector = selects("app", "b"), "elsewhere", nil
	unready := Pod{Namespace: "default", Name: "a", NodeName: "n", Labels: map[string]string{"app": "a"}}
	with := func(f func(*Pod)) Pod { p := unready; p.Ready = true; f(&p); return p }
	ready := with(func(*Pod) {})
	tolerates := Toleration{Key: "karpenter.sh/disrupted", Operator: "Exists"}
	for _, c := range []struct {
		name       string
		pod        Pod
		budgets    []PodDisruptionBudget
		now, never bool
	}{
		{"none", ready, nil, false, false},
		{"one that allows another", ready, []PodDisruptionBudget{one}, false, false},
		{"one without room", ready, []PodDisruptionBudget{none}, true, false},
		{"the same, a pod that is not ready", unready, []PodDisruptionBudget{none}, true, false},
		{"one that never has room", ready, []PodDisruptionBudget{never}, true, true},
		{"the same, a pod that is not ready", unready, []PodDisruptionBudget{never}, true, true},
		{"one that always lets unready pods go", unready, []PodDisruptionBudget{always}, false, false},
		{"the same, a ready pod", ready, []PodDisruptionBudget{always}, true, true},
		{"two", ready, []PodDisruptionBudget{one, one}, true, true},
		{"two that always let unready pods go", unready, []PodDisruptionBudget{always, always}, true, true},
		{"a pod whose image cannot be pulled", with(func(p *Pod) { p.Phase, p.Ready = "Pending", false }), []PodDisruptionBudget{never}, false, false},
		{"the same under two", with(func(p *Pod) { p.Phase, p.Ready = "Pending", false }), []PodDisruptionBudget{none, never}, false, false},
		{"as many healthy pods as it wants, a pod that is not ready", unready, []PodDisruptionBudget{enough}, false, false},
		{"the same, a ready pod", ready, []PodDisruptionBudget{enough}, true, true},
		{"of other pods", ready, []PodDisruptionBudget{other, elsewhere, empty}, false, false},
		{"a pod that tolerates the taint of drained nodes", with(func(p *Pod) { p.Tolerations = []Toleration{tolerates} }), []PodDisruptionBudget{never}, false, false},
		{"a static pod", with(func(p *Pod) { p.Owner = OwnerNode }), []PodDisruptionBudget{never}, false, false},
		{"a pod of a DaemonSet", with(func(p *Pod) { p.Owner = OwnerDaemonSet }), []PodDisruptionBudget{never}, true, true},
		{"a pod that has ended", with(func(p *Pod) { p.Phase = "Failed" }), []PodDisruptionBudget{never}, false, false},
		{"a pod that is ending", with(func(p *Pod) { p.Deleting = noon }), []PodDisruptionBudget{never}, false, false},
	} {
		s := Snapshot{Now: noon, Budgets: c.budgets}
		if word, why := s.Obstacles().Of([]*Pod{&c.pod}); (word == PodBudgeted) != c.now || (word == "") == c.now {
			t.Errorf("%s: %q %q", c.name, word, why)
		}
		if got := s.Obstacles().Unevictable(&c.pod); got != c.never {
			t.Errorf("%s: nobody may evict it: %t", c.name, got)
		}
	}
}

// A pod that asks not to be disrupted is an obstacle whoever makes it, unless it has ended, is ending, or asked for a
// while that is over.
func TestWhichPodsAreObstacles(t *testing.T) {
	asks := Pod{Namespace: "default", Name: "a", NodeName: "n", DoNotDisrupt: "true", Started: noon.Add(-time.Hour)}
	with := func(f func(*Pod)) Pod { p := asks; f(&p); return p }
	for _, c := range []struct {
		name string
		pod  Pod
		want string
	}{
		{"for good", asks, Protected},
		{"of a DaemonSet", with(func(p *Pod) { p.Owner = OwnerDaemonSet }), Protected},
		{"static", with(func(p *Pod) { p.Owner = OwnerNode }), Protected},
		{"of the taint", with(func(p *Pod) { p.Tolerations = []Toleration{{Operator: "Exists"}} }), Protected},
		{"for two hours", with(func(p *Pod) { p.DoNotDisrupt = "2h" }), Protected},
		{"for an hour", with(func(p *Pod) { p.DoNotDisrupt = "1h" }), ""},
		{"not", with(func(p *Pod) { p.DoNotDisrupt = "false" }), ""},
		{"ended", with(func(p *Pod) { p.Phase = "Succeeded" }), ""},
		{"ending", with(func(p *Pod) { p.Deleting = noon }), ""},
	} {
		s := Snapshot{Now: noon}
		if word, _ := s.Obstacles().Of([]*Pod{{Namespace: "default", Name: "other"}, &c.pod}); word != c.want {
			t.Errorf("%s: %q, want %q", c.name, word, c.want)
		}
	}
}

func selects(key string, values ...string) *Selector {
	return &Selector{Requirements: []requirements.Requirement{requirements.Of(key, values...)}}
}

// Nobody may evict a pod whose budget never allows it, or that has two; one that is not ready goes where its one budget
// says so.
func TestUnevictable(t *testing.T) {
	of := func(namespace, app string, blocking, always bool) PodDisruptionBudget {
		return PodDisruptionBudget{
			Namespace: namespace, Selector: &Selector{Requirements: []requirements.Requirement{requirements.Of("app", app)}}, FullyBlocking: blocking,
			AlwaysAllowUnready: always,
		}
	}
	for _, c := range []struct {
		name            string
		budgets         []PodDisruptionBudget
		ready, notReady bool
	}{
		{"none", nil, false, false},
		{"of others", []PodDisruptionBudget{of("default", "other", true, false), of("other", "web", true, false)}, false, false},
		{"one that allows some", []PodDisruptionBudget{of("default", "web", false, false)}, false, false},
		{"one that allows none", []PodDisruptionBudget{of("default", "web", true, false)}, true, true},
		{"one that allows none but unhealthy pods", []PodDisruptionBudget{of("default", "web", true, true)}, true, false},
		{"two", []PodDisruptionBudget{of("default", "web", false, true), of("default", "web", false, true)}, true, true},
	} {
		s, pod := Snapshot{Budgets: c.budgets}, Pod{Namespace: "default", Name: "web-1", Labels: map[string]string{"app": "web"}}
		if got := s.Obstacles().Unevictable(&pod); got != c.notReady {
			t.Errorf("%s, not ready: %t", c.name, got)
		}
		if pod.Ready = true; s.Obstacles().Unevictable(&pod) != c.ready {
			t.Errorf("%s, ready: %t", c.name, !c.ready)
		}
	}
}
