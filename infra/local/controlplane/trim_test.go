package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// kube-scheduler keeps of a pod what places it, and little else.
func TestTrimPodKeepsWhatPlacesAPod(t *testing.T) {
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
	container := corev1.Container{Name: "main", Image: "web:1",
		Ports:     []corev1.ContainerPort{{HostPort: 8080}},
		Resources: corev1.ResourceRequirements{Requests: requests}}
	want := corev1.Pod{Spec: corev1.PodSpec{NodeName: "a", NodeSelector: map[string]string{"zone": "b"},
		Volumes:    []corev1.Volume{{Name: "data"}},
		Containers: []corev1.Container{container}, InitContainers: []corev1.Container{container}}}
	given := want.DeepCopy()
	given.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1)}}}
	for _, c := range []*corev1.Container{&given.Spec.Containers[0], &given.Spec.InitContainers[0]} {
		c.Env, c.LivenessProbe = []corev1.EnvVar{{Name: "A", Value: "b"}}, probe
		c.VolumeMounts = []corev1.VolumeMount{{Name: "data"}}
	}
	got, err := trimPod(given)
	if err != nil || got.(*corev1.Pod).String() != want.String() {
		t.Errorf("%v, %v, want %s", got, err, want.String())
	}
	if node, err := trimPod(&corev1.Node{}); err != nil || node == nil {
		t.Errorf("what is no pod: %v, %v", node, err)
	}
}
