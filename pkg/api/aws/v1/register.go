package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Group is the API group of EC2NodeClass, and the label domain of everything EC2.
	Group = "karpenter.k8s.aws"
	// Version is the one version of it that is served and stored.
	Version = "v1"
	// EC2NodeClassKind is the kind as it stands in manifests and in a pool's nodeClassRef.
	EC2NodeClassKind = "EC2NodeClass"
	// EC2NodeClassResource is the plural name in request paths.
	EC2NodeClassResource = "ec2nodeclasses"
)

// GroupVersion is karpenter.k8s.aws/v1.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme teaches a scheme the kinds of this package. It never fails; the error is there to fit a
// runtime.SchemeBuilder.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &EC2NodeClass{}, &EC2NodeClassList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
