// Package report writes a Solution down as a plan, and says why pods have no place.
//
// Start with PlanWriter.PlanLaunches in launch_nodes.go, which names the types that may stand in for each new node
// (launch_choice.go), and with Explainer.ExplainUnplaced in explain_unplaced.go. It refuses to know how the solution
// was found.
package report
