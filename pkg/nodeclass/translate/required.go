package translate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/nodedeclaredfeatures/features"
	"k8s.io/component-helpers/nodedeclaredfeatures/types"

	"joiner.sh/pkg/model/cluster"
)

// requiredFeatures are the features that kube-scheduler wants a node to declare for the pod, sorted.
func requiredFeatures(s *corev1.PodSpec) (out []string) {
	for _, f := range features.AllFeatures {
		if f.InferForScheduling(&types.PodInfo{Spec: s}) {
			out = append(out, cluster.RequiredFeature(f.Name()))
		}
	}
	slices.Sort(out)
	return out
}

// declaredFeatures returns those features of which the node's kubelet says that it has them. Others matter to no pod.
func declaredFeatures(n *corev1.Node) (out []string) {
	for _, f := range features.AllFeatures {
		if slices.Contains(n.Status.DeclaredFeatures, f.Name()) {
			out = append(out, cluster.RequiredFeature(f.Name()))
		}
	}
	slices.Sort(out)
	return out
}
