package kube

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	karpv1 "joiner/pkg/api/v1"
	"joiner/pkg/api/v1alpha1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
)

// TranslatePod translates a pod that was read elsewhere than from a cluster. Its volumes are not looked at.
func TranslatePod(p *corev1.Pod) cluster.Pod { return podFrom(p) }

// TranslateTemplate translates the pod that a PodTemplate or a workload makes, with limits in place of requests that
// are not given. Volumes do not count.
func TranslateTemplate(namespace string, t corev1.PodTemplateSpec) *cluster.Pod {
	return templateFrom(namespace, t)
}

// TranslateDaemon translates the pod that a DaemonSet makes for a node.
func TranslateDaemon(d *appsv1.DaemonSet) cluster.Pod { return daemonFrom(d) }

// TranslatePool translates a NodePool whose class is one of classes.
func TranslatePool(p *karpv1.NodePool, classes []instancetypes.Class) cluster.Pool {
	return poolFrom(p, classes)
}

// Node translates a node.
func Node(n *corev1.Node) cluster.Node { return nodeFrom(n) }

// Claim translates a NodeClaim.
func Claim(n *karpv1.NodeClaim) cluster.Claim { return claimFrom(n) }

// Budget translates a PodDisruptionBudget.
func Budget(b *policyv1.PodDisruptionBudget) cluster.Budget { return budgetFrom(b) }

// TranslateOverlay translates a NodeOverlay.
func TranslateOverlay(o *v1alpha1.NodeOverlay) cluster.Overlay { return overlayFrom(o) }

// TranslateTaints translates taints.
func TranslateTaints(in []corev1.Taint) []cluster.Taint { return taintsFrom(in) }
