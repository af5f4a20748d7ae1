// Package search tries strategies and improves the solutions that they lead to.
//
// Start with SolveProblem in solve.go and read that file: it is the whole search from top to bottom. solve_budget.go
// says how much work a plan is worth, price_whole.go begins with what nodes that are there hold, search_recreate.go
// packs a few nodes anew. It refuses to know snapshots, and how anything is launched.
package search
