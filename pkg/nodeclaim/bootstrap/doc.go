// Package bootstrap writes the user data with which an instance becomes a node.
//
// It knows how each family of machine images is told the cluster, the labels, the taints and the kubelet settings, and
// how that is merged with the user's own text. It refuses to know where these come from.
//
// Labels and taints are there from the moment the kubelet registers, so that pods run at once. Unlike Karpenter's user
// data it has no taint karpenter.sh/unregistered, which would have to go before a pod can start.
package bootstrap
