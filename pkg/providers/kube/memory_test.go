package kube

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/pkg/nodeclass/translate"
)

// BenchmarkPodsKept measures how much memory a running pod takes in the cache: 150,000 of them, 50 of each ReplicaSet,
// decoded one by one as from a list.
func BenchmarkPodsKept(b *testing.B) {
	const pods = 150_000
	for b.Loop() {
		before := heapInUse()
		kept, shapes := map[string]*translate.ListedPod{}, translate.PodShapes{}
		for i := range pods {
			body, err := runningPod(i).Marshal()
			if err != nil {
				b.Fatal(err)
			}
			p := &corev1.Pod{}
			if err := p.Unmarshal(body); err != nil {
				b.Fatal(err)
			}
			listed := shapes.ListPod(p)
			kept[listed.UID] = listed
		}
		b.ReportMetric(float64(heapInUse()-before)/pods, "B/pod")
		runtime.KeepAlive(kept)
		runtime.KeepAlive(&shapes)
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func runningPod(i int) *corev1.Pod {
	app, yes := fmt.Sprintf("service-%d", i/50), true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("team-%d", i/1000), Name: fmt.Sprintf("%s-5d9c7b8f6d-%05d", app, i),
			UID:    types.UID(fmt.Sprintf("0b0f4c1e-7d7d-4e5a-9a55-%012d", i)),
			Labels: map[string]string{"app.kubernetes.io/name": app, "app.kubernetes.io/part-of": "shop", "pod-template-hash": "5d9c7b8f6d"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-5d9c7b8f6d",
				UID: types.UID(fmt.Sprintf("1b0f4c1e-7d7d-4e5a-9a55-%012d", i/50)), Controller: &yes}}},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i/7500, i/30%250),
			Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				"cpu": resource.MustParse("250m"), "memory": resource.MustParse("512Mi")}}}},
			Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"},
				{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute"}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone",
				WhenUnsatisfiable: "ScheduleAnyway", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": app}}}}},
		Status: corev1.PodStatus{Phase: "Running", Conditions: []corev1.PodCondition{{Type: "Ready", Status: "True"}}},
	}
}
