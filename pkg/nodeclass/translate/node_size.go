package translate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/resources"
)

// What one node may say of itself. A kubelet writes the labels and the status of its Node, which the API server bounds
// by bytes alone; all of it stands in the memory of every function.
const (
	// mostNodeLabels is several times what feature discovery puts on a node.
	mostNodeLabels = 1_000
	// mostConditions is several times what monitoring agents report.
	mostConditions = 100
	// mostNodeTaints bounds taints: a pod that is to go there tolerates these first.
	mostNodeTaints = 100
	// mostNodeResources bounds the extended resources of a node.
	mostNodeResources = 100
	// mostNodeText bounds the bytes of labels.
	mostNodeText = 128 << 10
)

// boundNodeLabels keeps labels as far as a node may have them: those of Kubernetes, AWS and ours first.
func boundNodeLabels(all map[string]string) map[string]string {
	text := 0
	for k, v := range all {
		text += len(k) + len(v)
	}
	if len(all) <= mostNodeLabels && text <= mostNodeText {
		return all
	}
	rank := func(key string) int {
		domain, _, found := strings.Cut(key, "/")
		if found && slices.ContainsFunc([]string{"kubernetes.io", "k8s.aws", "karpenter.sh", "joiner.sh"},
			func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }) {
			return 0
		}
		return 1
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
	out := map[string]string{}
	text = 0
	for _, k := range keys {
		if text += len(k) + len(all[k]); len(out) == mostNodeLabels || text > mostNodeText {
			break
		}
		out[k] = all[k]
	}
	return out
}

// nodeAmounts are the amounts of a node, of extended resources the first by name.
func nodeAmounts(l corev1.ResourceList) resources.List {
	if len(l) <= mostNodeResources {
		return Amounts(l)
	}
	first := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods,
		corev1.ResourceEphemeralStorage} {
		if q, ok := l[name]; ok {
			first[name] = q
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l))[:mostNodeResources] {
		first[name] = l[name]
	}
	return Amounts(first)
}
