package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass/translate"
)

func uidOf(s string) types.UID { return types.UID(s) }

// keepEqual is want as quantities, or the stored list if it says the same in other words.
func keepEqual(have corev1.ResourceList, want resources.List) corev1.ResourceList {
	out := translate.Quantities(want)
	if len(out) == 0 {
		out = nil
	}
	if equality.Semantic.DeepEqual(translate.Amounts(have), want) {
		return have
	}
	return out
}

// statusPatch is a merge patch of a claim's status. Resources that are gone from a list are named with null.
func statusPatch(before, after *karpv1.NodeClaimStatus) patchFields {
	return patchFields{
		"providerID": after.ProviderID, "nodeName": after.NodeName, "imageID": after.ImageID,
		"conditions":       after.Conditions,
		"lastPodEventTime": after.LastPodEventTime,
		"capacity":         resourcePatch(before.Capacity, after.Capacity),
		"allocatable":      resourcePatch(before.Allocatable, after.Allocatable),
	}
}

func resourcePatch(before, after corev1.ResourceList) patchFields {
	out := patchFields{}
	for name := range before {
		out[string(name)] = nil
	}
	for name, q := range after {
		out[string(name)] = q
	}
	return out
}
