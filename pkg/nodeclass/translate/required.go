package translate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/nodedeclaredfeatures/features"
	"k8s.io/component-helpers/nodedeclaredfeatures/types"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

// requiredFeatures are the features that kube-scheduler wants a node to declare for the pod, sorted.
func requiredFeatures(s *corev1.PodSpec) []string {
	return featuresWhere(func(f types.Feature) bool { return f.InferForScheduling(&types.PodInfo{Spec: s}) })
}

// declaredFeatures returns those features of which the node's kubelet says that it has them. Others matter to no pod.
func declaredFeatures(n *corev1.Node) []string {
	return featuresWhere(func(f types.Feature) bool { return slices.Contains(n.Status.DeclaredFeatures, f.Name()) })
}

// featuresWhere names the features that ok accepts, sorted.
func featuresWhere(ok func(types.Feature) bool) []string {
	out := lists.Of(lists.Where(features.AllFeatures, ok),
		func(f types.Feature) string { return cluster.RequiredFeature(f.Name()) })
	slices.Sort(out)
	return out
}
