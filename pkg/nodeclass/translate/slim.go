package translate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	"joiner.sh/pkg/model/cluster"
)

// Namespace translates a namespace, with as many of its labels as a pod may have.
func Namespace(n *corev1.Namespace) cluster.Namespace {
	return cluster.Namespace{Name: n.Name, Labels: boundLabels(n.Labels)}
}

// SlimBuffer keeps of a CapacityBuffer what it says about pods, what is needed to write its status, and that.
func SlimBuffer(in *v1beta1.CapacityBuffer) v1beta1.CapacityBuffer {
	out := v1beta1.CapacityBuffer{TypeMeta: in.TypeMeta, Spec: *in.Spec.DeepCopy(), Status: in.Status}
	m := &in.ObjectMeta
	out.ObjectMeta = metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, Generation: m.Generation,
		ResourceVersion: m.ResourceVersion, CreationTimestamp: m.CreationTimestamp,
		DeletionTimestamp: m.DeletionTimestamp}
	if ref := out.Spec.PodTemplateRef; ref != nil {
		ref.Name = firstBytes(ref.Name)
	}
	if ref := out.Spec.ScalableRef; ref != nil {
		ref.APIGroup, ref.Kind, ref.Name = firstBytes(ref.APIGroup), firstBytes(ref.Kind), firstBytes(ref.Name)
	}
	if s := out.Spec.ProvisioningStrategy; s != nil {
		*s = firstBytes(*s)
	}
	if all := out.Spec.Limits; len(all) > mostExtended {
		out.Spec.Limits = corev1.ResourceList{}
		for _, name := range slices.Sorted(maps.Keys(all))[:mostExtended] {
			out.Spec.Limits[name] = all[name]
		}
	}
	return out
}
