// Package lowerbound computes shadow prices of pod classes and a lower bound on the cost of any fleet that holds them.
//
// Start with cover_problem.go and cover.go. It solves the linear relaxation of covering classes with nodes by column
// generation; Farley's bound holds at every step, so prices and bound are valid whatever stops it. CoverByWholeNodes
// makes a real fleet. The simplex is our own, because column generation needs dual prices, which the libraries at hand
// do not return. Cost is in USD per hour.
//
// It refuses to know labels, zones and names. Limit: one row for each class, for up to about a thousand classes. Why:
// pkg/designs/price-first.md.
package lowerbound
