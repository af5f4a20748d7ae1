// Package lowerbound prices demand: what one pod of each class adds at least to the cost of any fleet that holds all of
// them.
//
// It solves the linear relaxation of covering classes of pods with nodes, where fractions of pods and of nodes are
// allowed, by column generation, and proves a lower bound on the cost of every real fleet on the way (Farley's bound):
// prices of pods such that no node can hold more worth of pods than it costs itself. Whatever stops it, prices and
// bound are valid. Whole proves a higher bound for few classes, and Fleet makes a real fleet for them. It knows
// amounts, prices and limits on how many of some pods one node may hold. It refuses to know labels, zones and names.
//
// Limits: it works with one row for each class, so it is meant for up to about a thousand classes. Cost is in USD per
// hour.
package lowerbound
