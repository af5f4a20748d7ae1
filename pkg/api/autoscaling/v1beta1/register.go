package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Group is the API group of CapacityBuffer.
	Group = "autoscaling.x-k8s.io"
	// Version is the version of it that Joiner reads.
	Version = "v1beta1"
	// CapacityBufferKind is the kind of a buffer in manifests.
	CapacityBufferKind = "CapacityBuffer"
	// CapacityBufferResource is the plural of CapacityBuffer in request paths.
	CapacityBufferResource = "capacitybuffers"
)

// GroupVersion is autoscaling.x-k8s.io/v1beta1.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme teaches a scheme the kinds of this package. It never fails; the error is there to fit a
// runtime.SchemeBuilder.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &CapacityBuffer{}, &CapacityBufferList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
