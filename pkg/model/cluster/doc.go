// Package cluster is the cluster as one pass saw it: pods, nodes, NodeClaims, pools, instances and prices, as plain
// values.
//
// It knows no Kubernetes or AWS client. A snapshot is never changed after it was read; decisions are functions of it,
// so it can be stored and replayed. All lists are sorted by name (pods by namespace and name).
package cluster
