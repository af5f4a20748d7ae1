// Package search tries strategies and improves the solutions that they lead to.
//
// Start with SolveProblem in solve.go and read that file: it is the whole search from top to bottom. strategy.go packs
// by one strategy, solve_budget.go says how much work a plan is worth, search_local.go and search_recreate.go pack a
// few nodes anew. It refuses to know snapshots, and how anything is launched.
package search
