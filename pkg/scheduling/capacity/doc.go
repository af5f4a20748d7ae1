// Package capacity is where pods can go: the offerings of NodePools, and the nodes and claims that there are.
//
// Start with CatalogBuilder.FindPools in offering_catalog.go, which reads what pools can launch into a Catalog
// (catalog.go), and with ExistingNodes.FindHosts in node_existing.go, which makes a Bin of each node. Both answer
// whether pods of an Admission may be there (offering_admission.go, node_bin.go), what room there is and what it costs,
// as far as limits, reservations, DaemonSets and minValues allow. It refuses to know which pods go where, and all that
// depends on other pods.
package capacity
