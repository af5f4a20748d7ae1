package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Group is the API group of the objects that only Joiner knows.
	Group = "joiner.sh"
	// Version is the one version of NodeRollout that is served and stored.
	Version = "v1alpha1"
	// NodeRolloutKind is the kind of a rollout in manifests.
	NodeRolloutKind = "NodeRollout"
	// NodeRolloutResource is the plural of NodeRollout in request paths.
	NodeRolloutResource = "noderollouts"
)

// GroupVersion is joiner.sh/v1alpha1.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme teaches a scheme the kinds of this package. It never fails; the error is there to fit a
// runtime.SchemeBuilder.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &NodeRollout{}, &NodeRolloutList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
