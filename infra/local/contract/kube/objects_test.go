package kube_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	units "joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/providers/kube"
)

// applyText applies one YAML document, with NAME replaced by the test's own name.
func (c env) applyText(t *testing.T, text string) {
	t.Helper()
	var o unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "NAME", c.name)), &o.Object); err != nil {
		t.Fatal(err)
	}
	c.apply(t, &o)
	gvk := o.GroupVersionKind()
	if o.GetNamespace() != "" {
		return
	}
	t.Cleanup(func() {
		_ = c.dynamic.Resource(schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: plural(gvk.Kind)}).
			Delete(context.Background(), o.GetName(), metav1.DeleteOptions{})
	})
}

const classText = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: NAME}
spec:
  role: node
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {team: a}}]
  securityGroupSelectorTerms: [{tags: {team: a}}]
  blockDeviceMappings:
  - {deviceName: /dev/xvda, ebs: {volumeSize: 100Gi}}
  kubelet: {maxPods: 42, kubeReserved: {cpu: 100m}}
`

const poolText = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: NAME}
spec:
  weight: 7
  limits: {cpu: "100", nodes: "3"}
  template:
    metadata: {labels: {team: a}, annotations: {note: hello}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: NAME}
      expireAfter: 48h
      terminationGracePeriod: 30m
      taints: [{key: team, value: a, effect: NoSchedule}]
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
      - {key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["3"]}
`

// addPod makes a pod that waits for a node with the test's name, or is bound to one if node is given.
func (c env) addPod(t testing.TB, name, node string, change func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			NodeName:     node,
			NodeSelector: map[string]string{"kubetest": c.name},
			Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
			}}},
		},
	}
	if change != nil {
		change(pod)
	}
	out, err := c.CoreV1().Pods(c.name).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// addNode makes a node as a kubelet registers it, which a fake kubelet keeps ready.
func (c env) addNode(t testing.TB, name string, taints ...corev1.Taint) {
	t.Helper()
	size := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("20"),
	}
	_, err := c.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{"kubetest": c.name, "kubernetes.io/hostname": name},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake", "joiner.sh/seen": "yes", "other.io/noise": "x"},
		},
		Spec: corev1.NodeSpec{
			ProviderID: "aws:///us-west-2a/i-" + name,
			Taints:     taints,
		},
		Status: corev1.NodeStatus{Capacity: size, Allocatable: size},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = c.CoreV1().Nodes().Patch(context.Background(), name, "application/merge-patch+json",
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		_ = c.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

// unregistered is the taint that our user data gives a kubelet.
func unregistered() corev1.Taint {
	return corev1.Taint{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}
}

// readyNode is the node as the client sees it once a fake kubelet has made it ready.
func (c env) readyNode(t testing.TB, k *kube.Client, name string) (out cluster.Node) {
	t.Helper()
	eventually(t, "node "+name+" to be ready", func(ctx context.Context) (string, bool) {
		n, err := k.ReadNode(ctx, name)
		if err != nil {
			return err.Error(), false
		}
		out = n
		fresh := slices.ContainsFunc(n.Taints, func(t cluster.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
		return fmt.Sprint(n.Ready, n.Taints), n.Ready && !fresh
	})
	return out
}

// pool is the applied NodePool as a snapshot would show it, enough of it to make claims.
func (c env) pool(t testing.TB) cluster.Pool {
	t.Helper()
	o, err := c.dynamic.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}).
		Get(t.Context(), c.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	grace := 30 * time.Minute
	return cluster.Pool{Name: c.name, UID: string(o.GetUID()), Class: c.name, Hash: "123", ExpireAfter: 48 * time.Hour, TerminationGrace: &grace}
}

func (c env) launch() plan.Launch {
	least := int64(4)
	return plan.Launch{
		Pool: c.name, Class: c.name,
		Requirements: requirements.NewSet(
			requirements.Of("karpenter.sh/capacity-type", instancetypes.Spot, instancetypes.OnDemand),
			requirements.Of("node.kubernetes.io/instance-type", "m5.large", "c5.large"),
			requirements.Requirement{Key: "karpenter.k8s.aws/instance-cpu", Not: true, Min: &least, Values: []string{"6"}},
			requirements.Any("topology.kubernetes.io/zone"),
		),
		Labels:      map[string]string{"team": "a"},
		Annotations: map[string]string{"note": "hello"},
		Taints:      []cluster.Taint{{Key: "team", Value: "a", Effect: "NoSchedule"}},
		Startup:     []cluster.Taint{{Key: "warming", Effect: "NoExecute"}},
		Requests:    units.List{CPU: 1500, Memory: 3 << 30, Pods: 4, Extended: []units.Extended{{Name: "nvidia.com/gpu", Count: 1}}},
	}
}

// addClaim stores a claim of the test's pool and removes it in the end.
func (c env) addClaim(t *testing.T, k *kube.Client) cluster.Claim {
	t.Helper()
	return c.storeClaim(t, k, c.launch())
}

// storeClaim is addClaim for a launch.
func (c env) storeClaim(t *testing.T, k *kube.Client, l plan.Launch) cluster.Claim {
	t.Helper()
	out, err := k.CreateClaim(t.Context(), l, c.pool(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = k.DeleteClaim(context.Background(), out)
		_ = k.ReleaseClaim(context.Background(), out)
	})
	return out
}
