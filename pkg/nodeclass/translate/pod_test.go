package translate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// read parses YAML as the API server would hand it out.
func read[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPod(t *testing.T) {
	p := read[corev1.Pod](t, `
metadata:
  name: web-1
  namespace: shop
  uid: u1
  labels: {app: web, version: v2}
  annotations: {karpenter.sh/do-not-disrupt: "true"}
  creationTimestamp: "2026-03-01T12:00:00Z"
  deletionTimestamp: "2026-03-01T12:10:00Z"
  ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: u2}]
spec:
  priority: 1000
  priorityClassName: system-cluster-critical
  terminationGracePeriodSeconds: 5
  nodeSelector: {failure-domain.beta.kubernetes.io/zone: us-west-2a, team: a}
  overhead: {cpu: 10m}
  initContainers:
  - {name: setup, resources: {requests: {cpu: "2", memory: 10Mi}}}
  - {name: proxy, restartPolicy: Always, resources: {requests: {cpu: 100m}}, ports: [{containerPort: 1, hostPort: 9000, hostIP: 10.0.0.1}]}
  containers:
  - name: main
    resources: {requests: {cpu: 500m, memory: "100000001500m", nvidia.com/gpu: 1}}
    ports: [{containerPort: 80, hostPort: 8080, protocol: UDP}, {containerPort: 81}]
  tolerations: [{key: a, operator: Exists}, {key: b, operator: Gt, value: "5"}]
  topologySpreadConstraints:
  - {maxSkew: 2, minDomains: 3, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [version, absent]}
  - {maxSkew: 1, topologyKey: host, whenUnsatisfiable: ScheduleAnyway, nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor}
  - {maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, labelSelector: {}, matchLabelKeys: [absent]}
  - {maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, labelSelector: {}, matchLabelKeys: [version]}
status:
  phase: Pending
  startTime: "2026-03-01T12:01:00Z"
  conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}, {type: Ready, status: "True"}]
`)
	want := cluster.Pod{
		Namespace: "shop", Name: "web-1", UID: "u1", Labels: map[string]string{"app": "web", "version": "v2"},
		Created: at("12:00:00"), Started: at("12:01:00"), Deleting: at("12:10:00"), Priority: 1000, Critical: true,
		Owner: cluster.OwnerStatefulSet, Phase: "Pending", Ready: true, Unscheduled: true, GraceSec: 5, DoNotDisrupt: "true",
		// the first init container is the peak: 2 cpu beside nothing, and the overhead of 10m
		Need:         resources.List{CPU: 2010, Memory: 100000002, Pods: 1, Extended: []resources.Extended{{Name: "nvidia.com/gpu", Count: 1}}},
		NeedBounds:   &cluster.NeedBounds{Overhead: resources.List{CPU: 10}},
		NodeSelector: map[string]string{"topology.kubernetes.io/zone": "us-west-2a", "team": "a"},
		Tolerations:  []cluster.Toleration{{Key: "a", Operator: "Exists"}},
		Spread: []cluster.Spread{
			{Key: "zone", MaxSkew: 2, MinDomains: 3, Selector: selector(requirements.Of("app", "web"), requirements.Of("version", "v2"))},
			{Key: "host", MaxSkew: 1, Soft: true, IgnoreNodeAffinity: true, HonorTaints: true},
			{Key: "rack", MaxSkew: 1}, // kube-scheduler counts nobody
			{Key: "rack", MaxSkew: 1, Selector: selector(requirements.Of("version", "v2"))},
		},
		HostPorts: []cluster.HostPort{{Protocol: "UDP", IP: "0.0.0.0", Port: 8080}, {Protocol: "TCP", IP: "10.0.0.1", Port: 9000}},
	}
	if diff := cmp.Diff(want, Pod(p)); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
}

// A pod is untried as long as kube-scheduler has said nothing about it. What other schedulers do is not known.
func TestUntriedPod(t *testing.T) {
	for _, c := range []struct {
		name, spec, status string
		untried            bool
	}{
		{"new", "{schedulerName: default-scheduler}", "{phase: Pending}", true},
		{"no place", "{schedulerName: default-scheduler}",
			`{conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}`, false},
		{"gated", "{schedulerName: default-scheduler, schedulingGates: [{name: quota}]}",
			`{conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated}]}`, false},
		{"bound", "{schedulerName: default-scheduler, nodeName: n}", "{phase: Pending}", false},
		{"by another scheduler", "{schedulerName: volcano}", "{phase: Pending}", false},
		{"on Fargate", "{schedulerName: fargate-scheduler}", "{phase: Pending}", false},
	} {
		p := read[corev1.Pod](t, "{metadata: {name: web}, spec: "+c.spec+", status: "+c.status+"}")
		if got := new(PodShapes).ListPod(p).Pod().Untried; got != c.untried {
			t.Errorf("%s: untried %t", c.name, got)
		}
	}
}

func TestPodAffinity(t *testing.T) {
	p := read[corev1.Pod](t, `
metadata: {name: web, labels: {app: web, hash: h1}}
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: cpus, operator: Gt, values: ["3"]}, {key: team, operator: NotIn, values: [a]}, {key: team, operator: Exists}]
        - {}
        - matchExpressions: [{key: beta.kubernetes.io/os, operator: In, values: [linux]}]
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 5, preference: {matchExpressions: [{key: x, operator: DoesNotExist}]}}
      - {weight: 9, preference: {matchFields: [{key: metadata.name, operator: In, values: [n]}]}}
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: zone, namespaces: [b, a], labelSelector: {matchExpressions: [{key: app, operator: In, values: [z, x]}]}, matchLabelKeys: [hash]}
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: host, namespaceSelector: {}, labelSelector: {matchLabels: {app: web}}, mismatchLabelKeys: [hash]}
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 3, podAffinityTerm: {topologyKey: host}}
`)
	got := Pod(p)
	four := int64(4)
	want := cluster.Pod{
		Name: "web", Labels: map[string]string{"app": "web", "hash": "h1"}, GraceSec: 30, Need: resources.List{Pods: 1},
		NodeAffinity: [][]requirements.Requirement{
			{{Key: "cpus", Not: true, Min: &four}, {Key: "team", Not: true, Values: []string{"a"}}, {Key: "team", Not: true}},
			{requirements.Of("kubernetes.io/os", "linux")},
		},
		NodePrefers: []cluster.WeightedRequirements{{Weight: 5, Requirements: []requirements.Requirement{requirements.None("x")}}},
		Affinity: []cluster.AffinityTerm{{
			Key: "zone", Namespaces: []string{"a", "b"}, Selector: selector(requirements.Of("app", "x", "z"), requirements.Of("hash", "h1"))}},
		AntiAffinity: []cluster.AffinityTerm{{Key: "host", NamespaceSelector: &cluster.Selector{},
			Selector: selector(requirements.Of("app", "web"), requirements.Requirement{Key: "hash", Not: true, Values: []string{"h1"}})}},
		Avoids: []cluster.WeightedAffinityTerm{{Weight: 3, Term: cluster.AffinityTerm{Key: "host"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
}

func TestUnmodelled(t *testing.T) {
	for text, want := range map[string][]string{
		`{}`: nil,
		`{nodeSelector: {team: a, karpenter.sh/nodepool: x, karpenter.sh/capacity-type: spot, karpenter.k8s.aws/instance-cpu: "4"}}`: nil,
		`{resourceClaims: [{name: gpu}]}`:                               {"its claim gpu names neither a ResourceClaim nor a ResourceClaimTemplate"},
		`{resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]}`: nil,
		`{resourceClaims: [{name: gpu, resourceClaimName: one}]}`:       nil,
		`{schedulingGroup: {podGroupName: x}}`:                          {"scheduling in groups is not supported"},
		`{nodeSelector: {kubernetes.io/hostname: n}}`:                   {"node selector: it selects its node by kubernetes.io/hostname, which no new node can promise"},
		`{nodeName: n, nodeSelector: {kubernetes.io/hostname: n}}`:      nil,
		`{nodeSelector: {karpenter.sh/registered: "true"}}`:             {"node selector: the label karpenter.sh/registered is restricted, pods may not ask for it"},
		`{nodeSelector: {sub.karpenter.k8s.aws/x: y}}`:                  {"node selector: the label sub.karpenter.k8s.aws/x is restricted, nodes do not carry it"},
		`{nodeSelector: {karpenter.sh/capacity-type: cheap}}`:           {"node selector: karpenter.sh/capacity-type in (cheap): the capacity types are on-demand, spot and reserved"},
		`{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n]}]}]}}}}`: {
			"node affinity by field (metadata.name in matchFields) is not supported"},
		`{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}]}}}}`: {
			"node affinity has no term and selects no node"},
		`{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: x, operator: Gt, values: [many]}]}]}}}}`: {
			`node affinity: requirement x: operator Gt needs one integer of at least 0, got "many"`},
	} {
		pod := &corev1.Pod{Spec: *read[corev1.PodSpec](t, text)}
		if diff := cmp.Diff(want, Pod(pod).Unmodelled); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// Pods of AWS Fargate get nodes of their own, whether the webhook of EKS gave them its label or its scheduler.
func TestFargatePodsNeedNoNode(t *testing.T) {
	for text, want := range map[string]bool{
		`metadata: {name: a, namespace: b}`:                                                             true,
		`metadata: {name: a, namespace: b, labels: {eks.amazonaws.com/fargate-profile: p}}`:             false,
		`{metadata: {name: a, namespace: b}, spec: {schedulerName: fargate-scheduler, containers: []}}`: false,
		`{metadata: {name: a, namespace: b}, spec: {schedulerName: other-scheduler, containers: []}}`:   true,
	} {
		p := read[corev1.Pod](t, text)
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		if got := Pod(p).Provisionable(); got != want {
			t.Errorf("%s: needs a node %t, want %t", text, got, want)
		}
	}
}

func TestOwner(t *testing.T) {
	for want, refs := range map[cluster.Owner][]metav1.OwnerReference{
		cluster.OwnerNone:        nil,
		cluster.OwnerDaemonSet:   {{APIVersion: "x/v1", Kind: "Y"}, {APIVersion: "apps/v1", Kind: "DaemonSet"}},
		cluster.OwnerNode:        {{APIVersion: "v1", Kind: "Node"}},
		cluster.OwnerStatefulSet: {{APIVersion: "apps/v1", Kind: "StatefulSet"}, {APIVersion: "x/v1", Kind: "Y"}},
		cluster.OwnerOther:       {{APIVersion: "other/v1", Kind: "DaemonSet"}},
	} {
		if got := ownerOf(refs); got != want {
			t.Errorf("%v is %q, want %q", refs, got, want)
		}
	}
}

// What evicting a pod costs: Karpenter's annotation holds where it stands, even if it is no 32-bit number, else that of
// ReplicaSets.
func TestCostOfEviction(t *testing.T) {
	for text, want := range map[string]int32{
		`{}`: 0,
		`{controller.kubernetes.io/pod-deletion-cost: "7"}`:                                             7,
		`{controller.kubernetes.io/pod-deletion-cost: "much"}`:                                          0,
		`{controller.kubernetes.io/pod-deletion-cost: "2147483648"}`:                                    0,
		`{karpenter.sh/disruption-cost: "-2147483648"}`:                                                 -2147483648,
		`{karpenter.sh/disruption-cost: "2147483647"}`:                                                  2147483647,
		`{karpenter.sh/disruption-cost: "0", controller.kubernetes.io/pod-deletion-cost: "7"}`:          0,
		`{karpenter.sh/disruption-cost: "5", controller.kubernetes.io/pod-deletion-cost: "7"}`:          5,
		`{karpenter.sh/disruption-cost: "2147483648", controller.kubernetes.io/pod-deletion-cost: "7"}`: 0,
		`{karpenter.sh/disruption-cost: "", controller.kubernetes.io/pod-deletion-cost: "7"}`:           0,
	} {
		p := read[corev1.Pod](t, "{metadata: {annotations: "+text+"}}")
		if got := Pod(p).DeletionCost; got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

func selector(rs ...requirements.Requirement) *cluster.Selector {
	return &cluster.Selector{Requirements: rs}
}

func at(timeOfDay string) time.Time {
	out, err := time.Parse(time.DateTime, "2026-03-01 "+timeOfDay)
	if err != nil {
		panic(err)
	}
	return out
}

// Old names of labels are those of today, unless the pod says one thing by the old name and another by the new one: no
// node is both.
func TestOldNamesOfLabels(t *testing.T) {
	const arch, oldArch, zone = "kubernetes.io/arch", "beta.kubernetes.io/arch", "topology.kubernetes.io/zone"
	const oldZone, diskZone = "failure-domain.beta.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone"
	for _, c := range []struct{ written, want map[string]string }{
		{map[string]string{oldArch: "arm64"}, map[string]string{arch: "arm64"}},
		{map[string]string{oldArch: "arm64", arch: "arm64"}, map[string]string{arch: "arm64"}},
		{map[string]string{oldArch: "arm64", arch: "amd64"}, map[string]string{oldArch: "arm64", arch: "amd64"}},
		{map[string]string{oldZone: "a", diskZone: "b"}, map[string]string{zone: "a", diskZone: "b"}},
		{map[string]string{oldZone: "a", diskZone: "b", zone: ""}, map[string]string{oldZone: "a", diskZone: "b", zone: ""}},
		{nil, nil},
	} {
		if diff := cmp.Diff(c.want, stableKeys(c.written)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.written, diff)
		}
	}
}
