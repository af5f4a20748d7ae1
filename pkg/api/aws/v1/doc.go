// Package v1 holds the karpenter.k8s.aws/v1 object EC2NodeClass, its names and its AMI aliases.
//
// It knows the shape of the object and which of its texts mean what. It refuses to know EC2: selectors are resolved,
// user data is written and instance types are matched elsewhere. The rules that the API server checks are markers here
// and reach the cluster through pkg/install.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1
