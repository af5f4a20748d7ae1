// Package scheduling decides where pods go and which nodes to buy.
//
// Start with binpack.Pods. lowerbound computes shadow prices and a lower bound on the cost of any fleet. Both are pure:
// a snapshot goes in, a plan comes out. They refuse to know how a node is launched. pkg/designs/price-first.md says why
// price comes first, and what the bound is.
package scheduling
