// Package scheduling decides where pods go and which nodes to buy.
//
// Start with binpack.Pods: a snapshot goes in, a plan comes out. Below it stand, from the lowest, podclass (what pods
// demand), capacity (what there is), podtopology (who counts whom), packing (solutions, with cover for the fill of a
// node), prices (what pods are worth, by lowerbound), report (plans and reasons) and search (strategies). All are pure,
// and none knows how a node is launched. pkg/designs/price-first.md says why price comes first, and what the bound is.
package scheduling
