// Package cover states what is to be bought as a covering problem: nodes that cover pods by class, at a price.
//
// Start with Problem in problem.go. KnapsackSolver (fill.go) finds the fill of one node that is worth most, fractions
// of pods allowed. It refuses to know what pods are worth, and which nodes to buy: lowerbound finds both.
package cover
