package translate

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
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
		NodeSelector: map[string]string{"topology.kubernetes.io/zone": "us-west-2a", "team": "a"},
		Tolerations:  []cluster.Toleration{{Key: "a", Operator: "Exists"}},
		Spread: []cluster.Spread{
			{Key: "zone", MaxSkew: 2, MinDomains: 3, Selector: selector(requirements.Of("app", "web"), requirements.Of("version", "v2"))},
			{Key: "host", MaxSkew: 1, Soft: true, IgnoreNodeAffinity: true, HonorTaints: true},
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

func TestATemplateIsNoUntriedPod(t *testing.T) {
	if Template("shop", corev1.PodTemplateSpec{Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName}}).Untried {
		t.Error("it is untried")
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
		`{resourceClaims: [{name: gpu}]}`:                               {"dynamic resource allocation is not supported"},
		`{containers: [{name: a, resources: {claims: [{name: gpu}]}}]}`: {"dynamic resource allocation is not supported"},
		`{schedulingGroup: {podGroupName: x}}`:                          {"scheduling in groups is not supported"},
		`{nodeSelector: {kubernetes.io/hostname: n}}`:                   {"it selects its node by kubernetes.io/hostname, which no new node can promise"},
		`{nodeName: n, nodeSelector: {kubernetes.io/hostname: n}}`:      nil,
		`{nodeSelector: {karpenter.sh/registered: "true"}}`:             {"the label karpenter.sh/registered is restricted, pods may not ask for it"},
		`{nodeSelector: {sub.karpenter.k8s.aws/x: y}}`:                  {"the label sub.karpenter.k8s.aws/x is restricted, nodes do not carry it"},
		`{nodeSelector: {karpenter.sh/capacity-type: cheap}}`:           {"karpenter.sh/capacity-type in (cheap): the capacity types are on-demand, spot and reserved"},
		`{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n]}]}]}}}}`: {
			"node affinity by field (metadata.name in matchFields) is not supported"},
		`{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}]}}}}`: {
			"its required node affinity has no term and selects no node"},
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

func TestDaemon(t *testing.T) {
	d := read[appsv1.DaemonSet](t, `
metadata: {name: agent, namespace: kube-system, uid: u1}
spec:
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: a, resources: {limits: {cpu: 200m, memory: 100Mi}, requests: {cpu: 50m}}}]
      tolerations: [{operator: Exists}]
`)
	got := DaemonPod(d)
	if diff := cmp.Diff(resources.List{CPU: 50, Memory: 100 << 20, Pods: 1}, got.Need); diff != "" {
		t.Errorf("need (-want +got):\n%s", diff)
	}
	if got.Owner != cluster.OwnerDaemonSet || got.Key() != "kube-system/agent" || got.Labels["app"] != "agent" || len(got.Tolerations) != 7 {
		t.Errorf("daemon: %+v", got)
	}
	if len(d.Spec.Template.Spec.Containers[0].Resources.Requests) != 1 {
		t.Error("the DaemonSet was changed")
	}
}

func TestPoolIsReadyOnlyWithItsClass(t *testing.T) {
	classes := []instancetypes.Class{{Name: "good", Ready: true}, {Name: "bad", Message: "no subnet"}}
	for _, c := range []struct{ text, class, message string }{
		{`{}`, "good", ""},
		{`{}`, "bad", "its EC2NodeClass bad is not ready: no subnet"},
		{`{}`, "gone", "its EC2NodeClass gone does not exist"},
		{`{conditions: [{type: Ready, status: "True"}]}`, "good", ""},
		{`{conditions: [{type: ValidationSucceeded, status: "False", message: bad label}, {type: Ready, status: "False"}]}`, "good",
			"ValidationSucceeded is False: bad label"},
	} {
		p := &karpv1.NodePool{Status: *read[karpv1.NodePoolStatus](t, c.text)}
		p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: c.class}
		if got := Pool(p, classes); got.Message != c.message || got.Ready != (c.message == "") {
			t.Errorf("status %s with class %s: ready %t, %q; want %q", c.text, c.class, got.Ready, got.Message, c.message)
		}
	}
}

// An amount that cannot be read stops the pool, and nothing is taken for it.
func TestWhatANodeCostsItsOwner(t *testing.T) {
	for text, want := range map[string]float64{"0.04": 0.04, "0": 0, "-1": -1, "much": -1, "": -1, "NaN": -1} {
		p := &karpv1.NodePool{}
		p.Annotations = map[string]string{karpv1.AnnotationNodeOverheadUSD: text}
		p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "good"}
		got := Pool(p, []instancetypes.Class{{Name: "good", Ready: true}})
		switch {
		case want < 0 && (got.Ready || got.DeclaredNodeUSD != nil || !strings.Contains(got.Message, "write USD per hour")):
			t.Errorf("%q: %v, ready %t, %q; want a refusal", text, got.DeclaredNodeUSD, got.Ready, got.Message)
		case want >= 0 && (!got.Ready || got.DeclaredNodeUSD == nil || *got.DeclaredNodeUSD != want):
			t.Errorf("%q: %v, ready %t, %q; want %v", text, got.DeclaredNodeUSD, got.Ready, got.Message, want)
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

// What the decisions take from a PodDisruptionBudget, in both forms that its numbers have.
func TestBudget(t *testing.T) {
	for text, want := range map[string]cluster.Budget{
		`{spec: {maxUnavailable: 1}, status: {disruptionsAllowed: 2}}`:               {DisruptionsAllowed: 2},
		`{spec: {maxUnavailable: 0}}`:                                                {FullyBlocking: true},
		`{spec: {maxUnavailable: "0%"}}`:                                             {FullyBlocking: true},
		`{spec: {maxUnavailable: "10%"}}`:                                            {},
		`{spec: {minAvailable: "100%"}}`:                                             {FullyBlocking: true},
		`{spec: {minAvailable: 100}}`:                                                {},
		`{spec: {minAvailable: 1, unhealthyPodEvictionPolicy: AlwaysAllow}}`:         {AlwaysAllowUnready: true},
		`{spec: {minAvailable: 1, unhealthyPodEvictionPolicy: IfHealthyBudget}}`:     {},
		`{metadata: {namespace: a, name: b}, spec: {selector: {}, minAvailable: 1}}`: {Namespace: "a", Name: "b", Selector: &cluster.Selector{}},
		// its controller says that none of its pods may ever be missing
		`{spec: {minAvailable: 1}, status: {expectedPods: 1, desiredHealthy: 1, currentHealthy: 1}}`:     {FullyBlocking: true},
		`{spec: {minAvailable: "70%"}, status: {expectedPods: 3, desiredHealthy: 3, currentHealthy: 2}}`: {FullyBlocking: true},
		`{spec: {minAvailable: 5}, status: {expectedPods: 3, desiredHealthy: 5, currentHealthy: 3}}`:     {FullyBlocking: true},
		// that one of them may be, though none may go now
		`{spec: {minAvailable: 2}, status: {expectedPods: 3, desiredHealthy: 2, currentHealthy: 2}}`: {},
		// of a moment with more pods than are expected
		`{spec: {minAvailable: 1}, status: {expectedPods: 1, desiredHealthy: 1, currentHealthy: 2, disruptionsAllowed: 1}}`: {DisruptionsAllowed: 1},
		// of an older specification
		`{metadata: {generation: 2}, spec: {minAvailable: 1}, status: {observedGeneration: 1, expectedPods: 1, desiredHealthy: 1}}`: {},
		`{metadata: {generation: 2}, spec: {minAvailable: 1}, status: {observedGeneration: 2, expectedPods: 1, desiredHealthy: 1}}`: {FullyBlocking: true},
		// nobody looked at it, or it has no pods
		`{spec: {minAvailable: 1}, status: {desiredHealthy: 1}}`: {},
	} {
		if diff := cmp.Diff(want, Budget(read[policyv1.PodDisruptionBudget](t, text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// A pool that was stored with a value that no label can have is not launched from: its NodeClaims would be refused.
func TestPoolRequiresLabelValues(t *testing.T) {
	for text, want := range map[string]string{
		`{key: team, operator: In, values: [a, ""]}`:          "",
		`{key: team, operator: Gt, values: ["4"]}`:            "",
		`{key: team, operator: In, values: [a, "a b"]}`:       `no label team can have the value "a b"`,
		`{key: team, operator: NotIn, values: ["a\x1b[31m"]}`: `no label team can have the value "a\x1b[31m"`,
	} {
		p := &karpv1.NodePool{}
		p.Spec.Template.Spec.Requirements = []karpv1.Requirement{*read[karpv1.Requirement](t, text)}
		p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "good"}
		got := Pool(p, []instancetypes.Class{{Name: "good", Ready: true}})
		if got.Message != want || got.Ready != (want == "") {
			t.Errorf("%s: ready %t, %q; want %q", text, got.Ready, got.Message, want)
		}
	}
}

// A pool with replicas is static, also with none.
func TestStaticPool(t *testing.T) {
	for text, want := range map[string]cluster.Pool{`{}`: {}, `{replicas: 0}`: {Static: true}, `{replicas: 3}`: {Static: true, Replicas: 3}} {
		p := &karpv1.NodePool{Spec: *read[karpv1.NodePoolSpec](t, text)}
		p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "good"}
		if got := Pool(p, nil); got.Static != want.Static || got.Replicas != want.Replicas {
			t.Errorf("%s: static %t with %d nodes", text, got.Static, got.Replicas)
		}
	}
}

// A pool that was edited since refresh looked at it is not launched from, and says that refresh is to look again.
func TestPoolIsUnseenWhenEdited(t *testing.T) {
	classes := []instancetypes.Class{{Name: "good", Ready: true}}
	const seen = `{conditions: [{type: Ready, status: "True", observedGeneration: 3}]}`
	gone := metav1.NewTime(at("10:00:00"))
	for _, c := range []struct {
		what          string
		status        string
		generation    int64
		deleted       *metav1.Time
		unseen, ready bool
	}{
		{"as it was looked at", seen, 3, nil, false, true},
		{"edited since", seen, 4, nil, true, false},
		{"edited and deleted", seen, 4, &gone, false, false},
		{"never looked at", `{}`, 4, nil, false, true},
		{"looked at by somebody who does not tell generations", `{conditions: [{type: Ready, status: "True"}]}`, 4, nil, false, true},
	} {
		p := &karpv1.NodePool{Status: *read[karpv1.NodePoolStatus](t, c.status)}
		p.Generation, p.DeletionTimestamp = c.generation, c.deleted
		p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "good"}
		if got := Pool(p, classes); got.Unseen != c.unseen || got.Ready != c.ready {
			t.Errorf("%s: unseen %t and ready %t, want %t and %t", c.what, got.Unseen, got.Ready, c.unseen, c.ready)
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
