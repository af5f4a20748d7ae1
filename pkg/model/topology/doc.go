// Package topology counts pods in the domains of a topology key and says where one more may go.
//
// It knows groups of pods (who is selected by a spread, affinity or anti-affinity term) and Kubernetes' rules for them.
// Packing and the simulated kube-scheduler of disruption both judge by it. It says what a spread asks of a node, and
// refuses to know nodes, prices and instance types. The hostname key is treated like any other, except that its
// least crowded domain is always empty, because a new node can always be made.
package topology
