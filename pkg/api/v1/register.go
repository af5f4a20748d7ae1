package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Group is the API group of NodePool and NodeClaim.
	Group = "karpenter.sh"
	// Version is the one version of them that is served and stored.
	Version = "v1"

	// NodePoolKind is the kind of a pool in manifests and owner references.
	NodePoolKind = "NodePool"
	// NodeClaimKind is the kind of a claim in manifests and owner references.
	NodeClaimKind = "NodeClaim"

	// NodePoolResource is the plural of NodePool in request paths.
	NodePoolResource = "nodepools"
	// NodeClaimResource is the plural of NodeClaim in request paths.
	NodeClaimResource = "nodeclaims"
)

// GroupVersion is karpenter.sh/v1.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme teaches a scheme the kinds of this package. It never fails; the error is there to fit a
// runtime.SchemeBuilder.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &NodePool{}, &NodePoolList{}, &NodeClaim{}, &NodeClaimList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
