// Package binpack decides where pods without a node go: onto nodes that exist or are on their way, and onto new ones.
//
// Start with Pods in pack.go. whatif.go answers many questions about one cluster, offering_cache.go keeps what is the
// same in the next pass. It is the only door to the rooms beside it, which are, from the lowest: podclass, capacity,
// podtopology, packing, prices, report, search. Together they know the rules of kube-scheduler and prices. They never
// guess: a pod with a constraint that they do not know is unschedulable with that reason. They refuse to know how
// anything is launched.
package binpack
