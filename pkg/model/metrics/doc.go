// Package metrics knows what Joiner counts and measures, under Karpenter's names where it has one, and how that is
// written in CloudWatch's embedded metric format.
//
// It refuses to know where the lines go and who measures. Every combination of dimensions is billed, so dimensions are
// few: cluster, and for some metrics nodepool, capacity_type or reason; never a NodeClaim, a node or an instance type.
package metrics
