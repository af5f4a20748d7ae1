package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/resources"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

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
	for _, node := range hosts().StateNodes() {
		r := row{Name: node.Name(), Pool: node.Pool(), Registered: node.Registered(), Initialized: node.Initialized(), Deleting: node.MarkedForDeletion(),
			Allocatable: node.Allocatable().String(), From: node.Labels()["from"]}
		for _, t := range node.Taints() {
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

// What a kubelet says of its own node counts for nobody else: pool, offering and capacity are those of the claim.
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
		node := StateNode{Node: &Node{Labels: typed("p5.48xlarge"), Capacity: c.says}, Claim: &claim}
		if got := node.Capacity().String(); got != c.want || node.Pool() != "web" || node.OfferingKey().Type != "m5.large" {
			t.Errorf("%s: counts %s of pool %s as %s, want %s", c.name, got, node.Pool(), node.OfferingKey().Type, c.want)
		}
	}
	alone := StateNode{Node: &Node{Labels: typed("m5.large"), Capacity: resources.List{CPU: 1e9}}}
	if alone.Pool() != "" {
		t.Errorf("a node without a claim counts for pool %q", alone.Pool())
	}
}
