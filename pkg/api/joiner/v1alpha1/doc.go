// Package v1alpha1 holds the joiner.sh/v1alpha1 object: NodeRollout.
//
// It knows the shape of the object and the rules that the API server checks. It refuses to know what a rollout allows:
// that is pkg/rollout.
//
// +kubebuilder:object:generate=true
// +groupName=joiner.sh
package v1alpha1
