package plancheck

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/workload"
)

const testPools = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
      - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["2"]}
      - {key: team, operator: In, values: [red, blue]}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: tainted}
spec:
  template:
    metadata: {labels: {tier: hidden}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      taints: [{key: dedicated, value: x, effect: NoSchedule}]
      requirements: []
`

const testWorkload = `
name: t
groups:
- {name: web, count: 4, pod: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, resources: {requests: {cpu: 300m, memory: 256Mi}}}],
   topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]}}}
- {name: lone, count: 2, pod: {metadata: {labels: {app: lone}}, spec: {containers: [{name: a, resources: {requests: {cpu: 300m}}}],
   affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: lone}}}]}}}}}
- {name: pair, count: 2, pod: {metadata: {labels: {app: pair}}, spec: {containers: [{name: a, ports: [{hostPort: 80}], resources: {requests: {cpu: 300m}}}],
   topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: pair}}}]}}}
- {name: near, count: 2, pod: {metadata: {labels: {app: near}}, spec: {containers: [{name: a, resources: {requests: {cpu: 300m}}}],
   affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: near}}}]}}}}}
- {name: picky, count: 1, pod: {spec: {nodeSelector: {karpenter.sh/capacity-type: on-demand, team: blue}, containers: [{name: a, resources: {requests: {cpu: 300m}}}]}}}
- {name: absurd, count: 1, pod: {spec: {containers: [{name: a, resources: {requests: {cpu: "-1"}}}]}}}
pods:
- {metadata: {name: follower}, spec: {containers: [{name: a}],
   affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}}}
daemonSets:
- {name: agent, pod: {spec: {tolerations: [{operator: Exists}], containers: [{name: a, resources: {limits: {cpu: 100m, memory: 100Mi}}}]}}}
boundGroups:
- {name: hermit, pod: {metadata: {labels: {app: hermit}}, spec: {containers: [{name: a, resources: {requests: {cpu: 300m}}}],
   affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: lone}}}]}}}}}
nodes:
- {name: node-1, nodePool: general, instanceType: m5.xlarge, zone: us-west-2a, capacityType: on-demand, labels: {team: red}, pods: {hermit: 1}}
`

func testMarket(t testing.TB) Market {
	t.Helper()
	resolved, err := os.ReadFile("../../model/instancetypes/testdata/resolved-types.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMarket(builtin.Data(), resolved)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// valid is the workload with a placement that keeps every rule: one m5.large in each zone, some pods on the node there
// is.
func valid(t testing.TB) (workload.File, workload.Placement) {
	t.Helper()
	f, err := workload.LoadWorkload(func(path string) ([]byte, error) {
		return []byte(map[string]string{"w": testWorkload, "p": testPools}[path]), nil
	}, "w", "p")
	if err != nil {
		t.Fatal(err)
	}
	claim := func(zone string, pods map[string]int) workload.NodeClaim {
		return workload.NodeClaim{NodePool: "general", InstanceType: "m5.large", Zone: zone, CapacityType: "on-demand", HourlyUSD: 0.096,
			TypeOptions: []string{"m5.large", "m5.xlarge"}, Pods: pods}
	}
	return f, workload.Placement{
		HourlyUSD: 0.384,
		NodeClaims: []workload.NodeClaim{
			claim("us-west-2a", map[string]int{"web": 1, "lone": 1, "pair": 1, "near": 1, "default/follower": 1}),
			claim("us-west-2b", map[string]int{"web": 1, "lone": 1, "pair": 1}),
			claim("us-west-2c", map[string]int{"web": 1, "picky": 1}),
			claim("us-west-2d", map[string]int{"web": 1}),
		},
		OnExisting: []workload.OnNode{{Node: "node-1", Pods: map[string]int{"near": 1}}},
		Unplaced:   []workload.Unplaced{{Group: "absurd", Count: 1, Reasons: []string{"negative"}}},
	}
}

func TestValid(t *testing.T) {
	f, p := valid(t)
	got := CheckPlacement(f, testMarket(t), p)
	if diff := cmp.Diff(Report{HourlyUSD: 0.384, Nodes: 4, Unplaced: 1}, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// move takes n pods of the group from one place to another; a place is the number of a claim, or there.
func move(p *workload.Placement, group string, n, from, to int) {
	for i, by := range map[int]int{from: -n, to: n} {
		pods := p.OnExisting[0].Pods
		if i >= 0 {
			pods = p.NodeClaims[i].Pods
		}
		if pods[group] += by; pods[group] == 0 {
			delete(pods, group)
		}
	}
}

const there = -1 // the place of move that is no claim

// wantValues gives pool general minValues for the key, and ties its picky pod to one zone.
func wantValues(f *workload.File, key string, n int) {
	f.Groups[4].Pod.Spec.NodeSelector["topology.kubernetes.io/zone"] = "us-west-2c"
	spec := &f.Pools[0].Spec.Template.Spec
	spec.Requirements = append(spec.Requirements, api.Requirement{Key: key, Operator: corev1.NodeSelectorOpExists, MinValues: &n})
}

// Every rule is broken once, and the checker says so.
func TestEveryRuleCanFail(t *testing.T) {
	type placement = workload.Placement
	spread := func(f *workload.File) *corev1.TopologySpreadConstraint {
		return &f.Groups[0].Pod.Spec.TopologySpreadConstraints[0]
	}
	market := testMarket(t)
	for _, c := range []struct {
		name   string
		change func(f *workload.File, p *placement)
		want   string
	}{
		{"a pod is lost", func(_ *workload.File, p *placement) { p.NodeClaims[3].Pods["web"] = 0 }, "web: 3 placed and 0 unplaced of 4 pods"},
		{"a pod is there twice", func(_ *workload.File, p *placement) { p.NodeClaims[2].Pods["picky"] = 2 }, "picky: 2 placed and 0 unplaced of 1 pods"},
		{"a pod nobody asked for", func(_ *workload.File, p *placement) { p.NodeClaims[0].Pods["ghost"] = 1 }, "there is no group ghost"},
		{"no reason", func(_ *workload.File, p *placement) { p.Unplaced[0].Reasons = nil }, "absurd: unplaced without a reason"},
		{"absurd request placed", func(_ *workload.File, p *placement) { p.NodeClaims[2].Pods["absurd"], p.Unplaced = 1, nil }, "absurd: placed although"},
		{"unknown node", func(_ *workload.File, p *placement) { p.OnExisting[0].Node = "node-2" }, "there is no node node-2"},
		{"unknown pool", func(_ *workload.File, p *placement) { p.NodeClaims[3].NodePool = "gone" }, `no pool "gone"`},
		{"type outside the pool", func(_ *workload.File, p *placement) { p.NodeClaims[3].InstanceType = "t3.large" }, "pool general wants karpenter.k8s.aws/instance-category"},
		{"not sold", func(_ *workload.File, p *placement) { p.NodeClaims[3].Zone = "us-west-2e" }, "not sold as on-demand in us-west-2e"},
		{"wrong price", func(_ *workload.File, p *placement) { p.NodeClaims[3].HourlyUSD = 0.05 }, "it costs 0.096 USD/h, not 0.05"},
		{"wrong sum", func(_ *workload.File, p *placement) { p.HourlyUSD = 0.3 }, "costs 0.384000 USD/h, it says 0.300000"},
		{"empty claim", func(_ *workload.File, p *placement) { p.NodeClaims[3].Pods = nil }, "it has no pods"},
		{"static pool", func(f *workload.File, _ *placement) { n := int64(1); f.Pools[0].Spec.Replicas = &n }, "pool general is static"},
		{"selector", func(_ *workload.File, p *placement) { move(p, "picky", 1, 2, there) }, "node-1: node selector or affinity of picky"},
		{"two wishes for one label", func(f *workload.File, p *placement) {
			f.Groups[0].Pod.Spec.NodeSelector = map[string]string{"team": "red"}
		}, "claim 2 (m5.large): node selector or affinity of"},
		{"taint", func(_ *workload.File, p *placement) { p.NodeClaims[3].NodePool = "tainted" }, "web does not tolerate dedicated=x:NoSchedule"},
		{"cpu", func(f *workload.File, p *placement) {
			f.Groups[0].Pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1850m")
		}, "claim 3 (m5.large): its pods want 1950 of cpu, there is 1930"},
		{"pods", func(f *workload.File, p *placement) {
			f.Groups = append(f.Groups, workload.PodGroup{Name: "many", Count: 40, Pod: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}}})
			p.NodeClaims[3].Pods["many"] = 40
		}, "its pods want 42 of pods, there is 29"},
		{"option too small", func(_ *workload.File, p *placement) { p.NodeClaims[0].TypeOptions = []string{"m5.large", "m3.medium"} }, "option m3.medium does not hold its pods"},
		{"zones that minValues want, on demand in one", func(f *workload.File, _ *placement) { wantValues(f, "topology.kubernetes.io/zone", 2) },
			"its options have 1 values of topology.kubernetes.io/zone, pool general wants 2"},
		{"ids of zones that minValues want", func(f *workload.File, _ *placement) { wantValues(f, "topology.k8s.aws/zone-id", 2) },
			"its options have 1 values of topology.k8s.aws/zone-id, pool general wants 2"},
		{"capacity types that minValues want", func(f *workload.File, _ *placement) { wantValues(f, "karpenter.sh/capacity-type", 2) },
			"its options have 1 values of karpenter.sh/capacity-type, pool general wants 2"},
		{"option that is not the type", func(_ *workload.File, p *placement) { p.NodeClaims[0].TypeOptions = []string{"m5.xlarge"} }, "its own type is not among its options"},
		{"minValues", func(f *workload.File, _ *placement) {
			n := 3
			f.Pools[0].Spec.Template.Spec.Requirements = append(f.Pools[0].Spec.Template.Spec.Requirements,
				api.Requirement{Key: "node.kubernetes.io/instance-type", Operator: corev1.NodeSelectorOpExists, MinValues: &n})
		}, "2 values of node.kubernetes.io/instance-type, pool general wants 3"},
		{"host port", func(f *workload.File, p *placement) {
			spread := &f.Groups[2].Pod.Spec.TopologySpreadConstraints[0]
			spread.MaxSkew = 2
			move(p, "pair", 1, 1, 0)
		}, "host port 80 is wanted twice"},
		{"spread over hosts", func(_ *workload.File, p *placement) { move(p, "pair", 1, 1, 0) }, "2 pods like pair, its spread allows 1"},
		{"spread over zones", func(_ *workload.File, p *placement) { move(p, "web", 1, 3, 1) }, "web: 2 pods in us-west-2b and 0 in the least of topology.kubernetes.io/zone"},
		{"too few zones", func(f *workload.File, p *placement) {
			n := int32(5)
			spread(f).MinDomains = &n
			f.Groups[0].Count, p.NodeClaims[0].Pods["web"] = 5, 2
		}, "web: 2 pods in us-west-2a and 0 in the least"},
		{"anti-affinity", func(_ *workload.File, p *placement) { move(p, "lone", 1, 1, 0) }, "lone in claim 0 (m5.large): too near to lone"},
		{"anti-affinity of one that was there", func(_ *workload.File, p *placement) { move(p, "lone", 1, 1, there) }, "hermit in node-1: too near to lone"},
		{"affinity to its like", func(_ *workload.File, p *placement) { move(p, "near", 1, there, 1) }, "near: it and its like are in [us-west-2a us-west-2b]"},
		{"affinity to others", func(_ *workload.File, p *placement) { move(p, "default/follower", 1, 0, there) }, "default/follower in node-1: nobody there"},
		{"affinity to two kinds at once", func(f *workload.File, p *placement) {
			terms := &f.Pods[0].Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			other := *(*terms)[0].DeepCopy()
			other.LabelSelector.MatchLabels["app"] = "lone"
			*terms = append(*terms, other)
		}, "default/follower in claim 0 (m5.large): nobody there"},
		{"limit", func(f *workload.File, _ *placement) {
			f.Pools[0].Spec.Limits = api.Limits{corev1.ResourceCPU: resource.MustParse("11")}
		}, "pool general: 12000 cpu are more than its limit 11"},
		{"limit of nodes", func(f *workload.File, _ *placement) {
			f.Pools[0].Spec.Limits = api.Limits{"nodes": resource.MustParse("4")}
		}, "pool general: 5 nodes are more than its limit 4"},
	} {
		f, p := valid(t)
		c.change(&f, &p)
		got := strings.Join(CheckPlacement(f, market, p).Violations, "\n")
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %q is not in\n%s", c.name, c.want, got)
		}
	}
}

// What looks like a fault and is none.
func TestWhatIsAllowed(t *testing.T) {
	market := testMarket(t)
	for _, c := range []struct {
		name   string
		change func(f *workload.File, p *workload.Placement)
	}{
		{"preferences", func(f *workload.File, p *workload.Placement) {
			f.Groups[0].Pod.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.ScheduleAnyway
			move(p, "web", 1, 3, 1)
			p.NodeClaims, p.HourlyUSD = p.NodeClaims[:3], 0.288
		}},
		{"a spread whose selector picks pods that do not carry it", func(f *workload.File, p *workload.Placement) {
			f.Groups[1].Pod.Labels["app"] = "web"
			move(p, "web", 1, 3, 1)
			p.NodeClaims, p.HourlyUSD = p.NodeClaims[:3], 0.288
		}},
		{"zones that the pod's own selector rules out", func(f *workload.File, p *workload.Placement) {
			f.Groups[0].Pod.Spec.NodeSelector = map[string]string{"topology.kubernetes.io/zone": "us-west-2a"}
			for i := 1; i < 4; i++ {
				move(p, "web", 1, i, 0)
			}
			move(p, "lone", 1, 0, 2)
			p.NodeClaims, p.HourlyUSD = p.NodeClaims[:3], 0.288
		}},
	} {
		f, p := valid(t)
		c.change(&f, &p)
		if got := CheckPlacement(f, market, p).Violations; len(got) > 0 {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
