// Package budgets tells how many nodes of a pool may be disrupted now.
//
// It knows the arithmetic, the schedules and which nodes count. It refuses to know why a node would
// be disrupted, and which one.
package budgets
