// Package bootstrap writes the user data with which an instance becomes a node.
//
// It knows how each family of machine images is told the cluster, the labels, the taints and the kubelet settings, and
// how that is merged with the user's own text. It refuses to know where these come from.
//
// Labels and taints are there from the moment the kubelet registers, so that pods run at once. Unlike the in-cluster
// original, the taint karpenter.sh/unregistered is not written: nobody would have to take it off before a pod can
// start.
package bootstrap
