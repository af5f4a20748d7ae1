package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/workload"
)

// jobGroups are groups of few, large pods: CPU work, NVIDIA and AMD GPUs, and Neuron devices.
func (g *generator) jobGroups(pods int) []workload.PodGroup {
	var out []workload.PodGroup
	for i := 0; pods > 0; i++ {
		n := min(pods, 1+g.rand.IntN(20))
		pods -= n
		name := fmt.Sprintf("job-%04d", i)
		out = append(out, workload.PodGroup{Name: name, Count: n, Pod: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Namespace: "batch", Labels: map[string]string{"job": name}},
			Spec:       g.jobSpec(),
		}})
	}
	return out
}

func (g *generator) jobSpec() corev1.PodSpec {
	device := func(cpu, memory, name string, count int, taint string) corev1.PodSpec {
		s := podSpec(cpu, memory)
		s.Containers[0].Resources.Requests[corev1.ResourceName(name)] = *resource.NewQuantity(int64(count),
			resource.DecimalSI)
		s.Tolerations = []corev1.Toleration{{Key: taint, Operator: corev1.TolerationOpExists}}
		return s
	}
	var s corev1.PodSpec
	switch g.rand.IntN(10) {
	case 0, 1, 2, 3:
		s = podSpec(fmt.Sprintf("%d", 1+g.rand.IntN(16)), fmt.Sprintf("%dGi", 2+g.rand.IntN(60)))
		if g.percentChance(20) {
			s.Containers[0].Resources.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse("6Gi")
		}
	case 4, 5, 6:
		s = device("3", "12Gi", "nvidia.com/gpu", 1+g.rand.IntN(2), "nvidia.com/gpu")
		if g.percentChance(40) {
			s.Affinity = nodeAffinity(labelAWS+"gpu-name", corev1.NodeSelectorOpIn,
				g.pickOne("l4", "a10g", "t4"), "l40s")
		}
	case 7:
		s = device("24", "90Gi", "nvidia.com/gpu", 8, "nvidia.com/gpu")
	case 8:
		s = device("2", "6Gi", "amd.com/gpu", 1, "nvidia.com/gpu") // the pool of GPUs has one taint for all
	default:
		s = device("3", "10Gi", "aws.amazon.com/neuron", 1, "aws.amazon.com/neuron")
	}
	if g.percentChance(25) {
		s.NodeSelector = map[string]string{labelSale: g.pickOne("spot", "on-demand")}
	}
	return s
}
