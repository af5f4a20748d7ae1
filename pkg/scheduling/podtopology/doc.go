// Package podtopology counts pods by domain and by node, as spread constraints and rules of pod affinity see them.
//
// Start with Counts.ReadRules in rules.go. It finds the domains of all topology keys, makes rules of the constraints of
// each class, counts the pods that stay where they are (running.go), and says which domains are eligible
// (eligibility.go) and how many pods one node may have (hosts.go). It decides as kube-scheduler does. It refuses to
// know where pods are put: who puts them counts on in a copy of DomainCounts.
package podtopology
