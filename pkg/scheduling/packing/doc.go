// Package packing puts pods on nodes: it fills a Solution by one Strategy.
//
// Start with Problem.Pack in packing.go. A Problem (problem.go) has the parts that every Solution (solution.go) starts
// from. division.go gives pods their domains and makes a PodBatch of each (batch.go), place_*.go uses the room there
// is, open_*.go makes new nodes, and repair.go learns from rules that a solution broke. It knows the rules of
// kube-scheduler. What pods are worth it is told by PodPrices: it refuses to know how prices are found, and which
// strategy is best.
package packing
