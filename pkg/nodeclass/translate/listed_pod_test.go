package translate

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func replicaOf(t *testing.T, i int) *corev1.Pod {
	t.Helper()
	p := agent(t, fmt.Sprint("web-", i), "70m", 1, "2")
	p.UID = types.UID(fmt.Sprint("uid-", i))
	return p
}

// Whatever pods have in common, each is what it would be without others.
func TestAListedPodIsTheWholePod(t *testing.T) {
	changes := map[string]func(*corev1.Pod){
		"as the others": func(*corev1.Pod) {},
		"its node":      func(p *corev1.Pod) { p.Spec.NodeName = "node-7" },
		"its labels":    func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} },
		"its request": func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = p.Spec.Containers[0].Resources.Requests.DeepCopy()
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = p.Spec.Containers[0].Resources.Requests["cpu"]
		},
		"its tolerations": func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "x", Operator: "Exists"}} },
		"its start":       func(p *corev1.Pod) { at := metav1.Unix(1000, 0); p.Status.StartTime = &at },
		"its end":         func(p *corev1.Pod) { at := metav1.Unix(2000, 0); p.DeletionTimestamp = &at },
		"its readiness": func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: "True", LastTransitionTime: metav1.Unix(3000, 0)},
				{Type: corev1.PodScheduled, Status: "True", LastTransitionTime: metav1.Unix(2500, 0)}}
		},
		"its volume": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		},
		"its affinity": func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "x", Operator: "In", Values: []string{"y"}}}}}}}}
		},
	}
	var shapes PodShapes
	first := shapes.ListPod(replicaOf(t, 0))
	for what, change := range changes {
		p := replicaOf(t, 1)
		change(p)
		want := Pod(p)
		want.UnreadClaims = claimNames(p)
		if diff := cmp.Diff(want, shapes.ListPod(p).Pod()); diff != "" {
			t.Errorf("a pod that differs by %s (-want +got):\n%s", what, diff)
		}
	}
	if diff := cmp.Diff(Pod(replicaOf(t, 0)), first.Pod()); diff != "" {
		t.Errorf("the first one was changed (-want +got):\n%s", diff)
	}
	a, b := shapes.ListPod(replicaOf(t, 2)), shapes.ListPod(replicaOf(t, 3))
	if a.Shape != b.Shape {
		t.Error("two replicas do not share what they have in common")
	}
}
