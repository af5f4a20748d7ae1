// Package api holds the Go types of the Kubernetes objects that Joiner reads and writes.
//
// Start with karpenter.sh/v1 in v1 (NodePool, NodeClaim, annotation keys) and karpenter.k8s.aws/v1 in aws/v1
// (EC2NodeClass). It knows names, conditions, validation markers and drift hashes. It refuses to know how objects are
// stored or what is decided from them.
package api
