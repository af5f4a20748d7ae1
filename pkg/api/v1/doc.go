// Package v1 holds the karpenter.sh/v1 objects: NodePool and NodeClaim, their names and the mechanics of their
// conditions.
//
// It knows the shape of the objects, the text users wrote in them, and the labels, taints and reasons that belong to
// them. It refuses to know what to do about any of it: no requirement algebra, no budgets, no cloud. The rules that the
// API server checks are markers here and reach the cluster through pkg/install.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1
