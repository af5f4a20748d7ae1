package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
)

// largeCheckpoint is that of a cluster with so many pods, 30 on each node.
func largeCheckpoint(pods int) *checkpoint {
	c := &checkpoint{written: time.Now(), versions: [kindCount]uint64{1, 1, 1}, nodes: map[string]cluster.Node{},
		claims: map[string]cluster.Claim{}, digests: map[string]uint64{}}
	var shapes translate.PodShapes
	listed := make([]*translate.ListedPod, 0, pods)
	for i := range pods {
		listed = append(listed, shapes.ListPod(runningPod(i)))
	}
	c.pods = translate.SortPods(slices.Values(listed))
	for i := range pods / 30 {
		n := translate.Node(runningNode(i))
		c.nodes[n.UID], c.digests[n.Name] = n, nodeDigest(n)
		claim := translate.Claim(runningClaim(i))
		c.claims[claim.UID] = claim
	}
	return c
}

func runningNode(i int) *corev1.Node {
	list := corev1.ResourceList{"cpu": resource.MustParse("7910m"), "memory": resource.MustParse("31Gi"), "pods": resource.MustParse("58"),
		"ephemeral-storage": resource.MustParse("80Gi")}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i/250, i%250),
		UID: types.UID(fmt.Sprintf("2b0f4c1e-7d7d-4e5a-9a55-%012d", i)), Labels: map[string]string{}},
		Spec:   corev1.NodeSpec{ProviderID: fmt.Sprintf("aws:///eu-west-1a/i-%017x", i)},
		Status: corev1.NodeStatus{Capacity: list, Allocatable: list}}
	for k := range 25 {
		n.Labels[fmt.Sprintf("karpenter.k8s.aws/instance-fact-%d", k)] = fmt.Sprint("value-", (i+k)%9)
	}
	n.Labels["kubernetes.io/hostname"] = n.Name
	for _, t := range []corev1.NodeConditionType{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: t, Status: "True", LastTransitionTime: metav1.Unix(1.7e9+int64(i), 0)})
	}
	return n
}

func runningClaim(i int) *karpv1.NodeClaim {
	n, node := testClaim(fmt.Sprintf("default-%05d", i), i, "ami-0123456789abcdef0"), runningNode(i)
	n.UID, n.ResourceVersion, n.Labels = types.UID(fmt.Sprintf("3b0f4c1e-7d7d-4e5a-9a55-%012d", i)), fmt.Sprint(1000+i), node.Labels
	for k, v := range node.Labels {
		n.Spec.Requirements = append(n.Spec.Requirements, karpv1.Requirement{Key: k, Operator: "In", Values: []string{v}})
	}
	n.Status.NodeName, n.Status.ProviderID = node.Name, node.Spec.ProviderID
	n.Status.Capacity, n.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
	for _, t := range []string{"Launched", "Registered", "Initialized", "Consolidatable", "Ready"} {
		n.Status.Conditions = append(n.Status.Conditions, metav1.Condition{Type: t, Status: "True", Reason: t, LastTransitionTime: metav1.Unix(1.7e9+int64(i), 0)})
	}
	return n
}

// A checkpoint stays small: the largest cluster fits many times into what is read.
func TestSizeOfACheckpoint(t *testing.T) {
	const pods, most = 3000, 160 // bytes a pod, its share of node and claim in
	if n := len(largeCheckpoint(pods).encode("one")); n > pods*most {
		t.Errorf("%d bytes a pod, want at most %d", n/pods, most)
	}
}

func BenchmarkCheckpoint(b *testing.B) {
	for _, pods := range []int{15_000, 60_000, 150_000} {
		c := largeCheckpoint(pods)
		body := c.encode("one")
		b.Run(fmt.Sprintf("encode/%d", pods), func(b *testing.B) {
			for b.Loop() {
				c.encode("one")
			}
			b.ReportMetric(float64(len(body))/1e6, "MB")
		})
		b.Run(fmt.Sprintf("decode/%d", pods), func(b *testing.B) {
			for b.Loop() {
				if _, err := decodeCheckpoint(body, "one", c.written, &translate.PodShapes{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkListedPage is what a list takes beside: a page of 500 pods with the managed fields, volumes and environment
// of real ones, decoded and translated.
func BenchmarkListedPage(b *testing.B) {
	var page corev1.PodList
	for i := range pageSize {
		p := runningPod(i)
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Operation: "Update", FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 1500))}}
		for k := range 12 {
			p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("SETTING_", k), Value: "value of a setting"})
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("volume-", k),
				VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}}}})
			p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: fmt.Sprint("volume-", k), MountPath: "/etc/config"})
		}
		page.Items = append(page.Items, *p)
	}
	body, err := page.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	var shapes translate.PodShapes
	for b.Loop() {
		var l corev1.PodList
		if err := l.Unmarshal(body); err != nil {
			b.Fatal(err)
		}
		_ = translatePage(l.Items, shapes.ListPod)
	}
	b.ReportMetric(float64(len(body))/pageSize, "B/pod")
}
