// Package v1alpha1 holds the karpenter.sh/v1alpha1 object: NodeOverlay.
//
// It knows the shape of the object and the rules that the API server checks. It refuses to know what an overlay does to
// instance types: that is pkg/model/overlays.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1alpha1
