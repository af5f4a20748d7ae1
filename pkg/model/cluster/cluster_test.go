package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestTolerates(t *testing.T) {
	for _, c := range []struct {
		toleration Toleration
		taint      Taint
		want       bool
	}{
		{Toleration{Operator: "Exists"}, Taint{"a", "x", "NoSchedule"}, true},
		{Toleration{Operator: "Exists", Effect: "NoExecute"}, Taint{"a", "x", "NoSchedule"}, false},
		{Toleration{Key: "a", Operator: "Exists"}, Taint{"a", "x", "NoSchedule"}, true},
		{Toleration{Key: "a", Operator: "Equal", Value: "x"}, Taint{"a", "x", "NoSchedule"}, true},
		{Toleration{Key: "a", Value: "x"}, Taint{"a", "y", "NoSchedule"}, false},
		{Toleration{Key: "b", Operator: "Exists"}, Taint{"a", "", "NoSchedule"}, false},
		{Toleration{}, Taint{"a", "", "NoSchedule"}, false},
		{Toleration{Key: "a"}, Taint{"a", "", "NoSchedule"}, true},
	} {
		if got := c.toleration.Tolerates(c.taint); got != c.want {
			t.Errorf("%+v on %s: %t", c.toleration, c.taint, got)
		}
	}
	left := Untolerated([]Taint{{"a", "", "NoSchedule"}, {"b", "1", "NoExecute"}}, []Toleration{{Key: "a", Operator: "Exists"}})
	if len(left) != 1 || left[0].String() != "b=1:NoExecute" {
		t.Errorf("left %v", left)
	}
}

func TestWhichPodsCount(t *testing.T) {
	pending := Pod{Phase: "Pending", Unscheduled: true}
	with := func(f func(*Pod)) Pod { p := pending; f(&p); return p }
	outside := requirements.None("karpenter.sh/nodepool")
	for _, c := range []struct {
		name                         string
		pod                          Pod
		provisionable, reschedulable bool
	}{
		{"pending", pending, true, true},
		{"gated", with(func(p *Pod) { p.Unscheduled = false }), false, true},
		{"running", with(func(p *Pod) { p.NodeName, p.Phase = "n", "Running" }), false, true},
		{"nominated", with(func(p *Pod) { p.Nominated = "n" }), false, true},
		{"ended", with(func(p *Pod) { p.Phase = "Succeeded" }), false, false},
		{"terminating", with(func(p *Pod) { p.Deleting = noon }), false, false},
		{"terminating, of a StatefulSet", with(func(p *Pod) { p.Deleting, p.Owner = noon, OwnerStatefulSet }), false, true},
		{"of a DaemonSet", with(func(p *Pod) { p.Owner = OwnerDaemonSet }), false, false},
		{"static", with(func(p *Pod) { p.Owner = OwnerNode }), false, false},
		{"of no pool", with(func(p *Pod) { p.NodeAffinity = terms(outside) }), false, true},
		{"of no pool in one of two ways", with(func(p *Pod) { p.NodeAffinity = terms(outside, requirements.Any("x")) }), true, true},
		{"of no pool if it can be", with(func(p *Pod) { p.NodePrefers = prefers(outside, requirements.Any("x")) }), true, true},
		{"of no pool if all else fails", with(func(p *Pod) { p.NodePrefers = prefers(requirements.Any("x"), outside) }), true, true},
		{"of some pool", with(func(p *Pod) { p.NodeAffinity = terms(requirements.Any("karpenter.sh/nodepool")) }), true, true},
	} {
		if c.pod.Provisionable() != c.provisionable || c.pod.Reschedulable() != c.reschedulable {
			t.Errorf("%s: provisionable %t, reschedulable %t", c.name, c.pod.Provisionable(), c.pod.Reschedulable())
		}
	}
}

// terms are required terms of one requirement each.
func terms(rs ...requirements.Requirement) (out [][]requirements.Requirement) {
	for _, r := range rs {
		out = append(out, []requirements.Requirement{r})
	}
	return out
}

// prefers are preferred terms of one requirement each, the heaviest first.
func prefers(rs ...requirements.Requirement) (out []WeightedRequirements) {
	for i, t := range terms(rs...) {
		out = append(out, WeightedRequirements{Weight: int32(len(rs) - i), Requirements: t})
	}
	return out
}

func TestProtected(t *testing.T) {
	for _, c := range []struct {
		value   string
		started time.Time
		want    bool
	}{
		{"true", time.Time{}, true},
		{"false", noon, false},
		{"", noon, false},
		{"1h", noon.Add(-30 * time.Minute), true},
		{"1h", noon.Add(-2 * time.Hour), false},
		{"1h", time.Time{}, true},
		{"1h", noon.Add(-time.Hour), false},
		{"1h", noon.Add(-time.Hour + time.Second), true},
		{"-1h", noon, false},
		{"-1h", time.Time{}, false},
		{"0s", time.Time{}, false},
		{"nonsense", noon, false},
		{"nonsense", time.Time{}, false},
	} {
		if got := (Pod{DoNotDisrupt: c.value, Started: c.started}).Protected(noon); got != c.want {
			t.Errorf("%q started %s: %t", c.value, c.started, got)
		}
	}
}

func TestSelector(t *testing.T) {
	var none *Selector
	web := &Selector{Requirements: []requirements.Requirement{requirements.Of("app", "web"), requirements.None("canary")}}
	if none.Matches(nil) || !(&Selector{}).Matches(nil) || !web.Matches(map[string]string{"app": "web"}) ||
		web.Matches(map[string]string{"app": "web", "canary": "1"}) || web.Matches(nil) {
		t.Error("a selector selects wrongly")
	}
}

// hosts is one node in every phase of its life.
func hosts() Snapshot {
	pool := []Taint{{"dedicated", "x", "NoSchedule"}}
	startup := []Taint{{"cni", "", "NoSchedule"}}
	claim := func(name string) Claim {
		return Claim{Name: name, Pool: "p", ProviderID: "id-" + name, Taints: pool, StartupTaints: startup, Labels: map[string]string{"from": "claim"},
			Capacity: resources.List{CPU: 2000}, Allocatable: resources.List{CPU: 1900}.With("gpu", 1)}
	}
	node := func(name string, labels map[string]string, taints ...Taint) Node {
		return Node{Name: name, ProviderID: "id-" + name, Labels: labels, Taints: taints, Allocatable: resources.List{CPU: 1800}}
	}
	return Snapshot{
		Claims: []Claim{claim("asked"), claim("born"), claim("ready"), claim("young")},
		Nodes: []Node{
			node("young", map[string]string{"karpenter.sh/registered": "true"}, pool[0], startup[0], Taint{"node.kubernetes.io/not-ready", "", "NoSchedule"}),
			node("ready", map[string]string{"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}, startup[0]),
			node("foreign", map[string]string{"from": "node"}, Taint{"karpenter.sh/disrupted", "", "NoSchedule"}),
			node("born", nil, Taint{"karpenter.sh/unregistered", "", "NoExecute"}),
		},
	}
}

func TestHosts(t *testing.T) {
	type row struct {
		Name, Pool                        string
		Registered, Initialized, Deleting bool
		Taints, Allocatable, From         string
	}
	var got []row
	for _, h := range hosts().StateNodes() {
		r := row{Name: h.Name(), Pool: h.Pool(), Registered: h.Registered(), Initialized: h.Initialized(), Deleting: h.MarkedForDeletion(),
			Allocatable: h.Allocatable().String(), From: h.Labels()["from"]}
		for _, t := range h.Taints() {
			r.Taints += t.String() + " "
		}
		got = append(got, r)
	}
	want := []row{
		{"born", "p", false, false, false, "dedicated=x:NoSchedule ", "cpu=1800m gpu=1", "claim"},
		{"foreign", "", true, true, true, "karpenter.sh/disrupted:NoSchedule ", "cpu=1800m", "node"},
		{"ready", "p", true, true, false, "cni:NoSchedule ", "cpu=1800m", ""},
		{"young", "p", true, false, false, "dedicated=x:NoSchedule ", "cpu=1800m gpu=1", ""},
		{"asked", "p", false, false, false, "dedicated=x:NoSchedule ", "cpu=1900m gpu=1", "claim"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
}

func TestConditions(t *testing.T) {
	c := Claim{Created: noon, Conditions: []Condition{{Type: "Launched", Status: "True"}, {Type: "Ready", Status: "False"}}}
	if !c.Is("Launched") || c.Is("Ready") || c.Is("Drained") {
		t.Error("a condition is told wrongly")
	}
	if got := c.Condition("Drained"); got.Status != "Unknown" || got.Since != noon {
		t.Errorf("missing condition: %+v", got)
	}
}

func TestEvictionCost(t *testing.T) {
	for _, c := range []struct {
		deletion, priority int32
		want               float64
	}{
		{0, 0, 1}, {1 << 27, 0, 2}, {-1 << 27, 0, 0}, {0, 1 << 25, 2}, {0, -1 << 25, 0}, {1 << 26, 1 << 24, 2},
		{1<<31 - 1, 0, 10}, {-1 << 31, 0, -10}, {0, 2_000_000_000, 10}, {0, -1 << 31, -10},
	} {
		if got := (Pod{DeletionCost: c.deletion, Priority: c.priority}).EvictionCost(); got != c.want {
			t.Errorf("deletion cost %d, priority %d: %v, want %v", c.deletion, c.priority, got, c.want)
		}
	}
}

// Nobody may evict a pod whose budget never allows it, or that has two; one that is not ready goes where its one budget
// says so.
func TestUnevictable(t *testing.T) {
	of := func(namespace, app string, blocking, always bool) Budget {
		return Budget{
			Namespace: namespace, Selector: &Selector{Requirements: []requirements.Requirement{requirements.Of("app", app)}}, FullyBlocking: blocking,
			AlwaysAllowUnready: always,
		}
	}
	for _, c := range []struct {
		name            string
		budgets         []Budget
		ready, notReady bool
	}{
		{"none", nil, false, false},
		{"of others", []Budget{of("default", "other", true, false), of("other", "web", true, false)}, false, false},
		{"one that allows some", []Budget{of("default", "web", false, false)}, false, false},
		{"one that allows none", []Budget{of("default", "web", true, false)}, true, true},
		{"one that allows none but unhealthy pods", []Budget{of("default", "web", true, true)}, true, false},
		{"two", []Budget{of("default", "web", false, true), of("default", "web", false, true)}, true, true},
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

// What a kubelet says of its own node counts for nobody else: pool, offer and capacity are those of the claim.
func TestNodesThatLieCountAsTheirClaims(t *testing.T) {
	typed := func(name string) map[string]string {
		return map[string]string{"node.kubernetes.io/instance-type": name, "karpenter.sh/nodepool": "privileged", "karpenter.sh/initialized": "true"}
	}
	claim := Claim{Pool: "web", Labels: typed("m5.large"), Capacity: resources.List{CPU: 2000, Memory: 7577 << 20, Pods: 29}.With("nvidia.com/gpu", 1)}
	for _, c := range []struct {
		name string
		says resources.List
		want string
	}{
		{"all", resources.List{CPU: 2000, Memory: 7700 << 20, Pods: 29}.With("nvidia.com/gpu", 1), "cpu=2 memory=7700Mi pods=29 nvidia.com/gpu=1"},
		{"too much", resources.List{CPU: 1e9, Memory: 16 << 40, Pods: 1e6}.With("nvidia.com/gpu", 99).With("example.com/x", 7), "cpu=2 memory=7577Mi pods=29 nvidia.com/gpu=1"},
		{"nothing", resources.List{}, "cpu=2 memory=7577Mi pods=29 nvidia.com/gpu=1"},
	} {
		h := StateNode{Node: &Node{Labels: typed("p5.48xlarge"), Capacity: c.says}, Claim: &claim}
		if got := h.Capacity().String(); got != c.want || h.Pool() != "web" || h.Offer().Type != "m5.large" {
			t.Errorf("%s: counts %s of pool %s as %s, want %s", c.name, got, h.Pool(), h.Offer().Type, c.want)
		}
	}
	alone := StateNode{Node: &Node{Labels: typed("m5.large"), Capacity: resources.List{CPU: 1e9}}}
	if alone.Pool() != "" {
		t.Errorf("a node without a claim counts for pool %q", alone.Pool())
	}
}
