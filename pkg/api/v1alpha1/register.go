package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpv1 "joiner.sh/pkg/api/v1"
)

const (
	// Version is the one version of NodeOverlay that is served and stored.
	Version = "v1alpha1"
	// NodeOverlayKind is the kind of an overlay in manifests.
	NodeOverlayKind = "NodeOverlay"
	// NodeOverlayResource is the plural of NodeOverlay in request paths.
	NodeOverlayResource = "nodeoverlays"
)

// GroupVersion is karpenter.sh/v1alpha1.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: karpv1.Group, Version: Version}
}

// AddToScheme teaches a scheme the kinds of this package. It never fails; the error is there to fit a
// runtime.SchemeBuilder.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &NodeOverlay{}, &NodeOverlayList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
