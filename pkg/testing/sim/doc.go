// Package sim runs the functions against a simulated cluster and EC2 in virtual time, where everything goes wrong that
// can.
//
// A seed decides all of it, and the same seed gives the same story, line for line. Start at world.go: parts around one
// engine, each of which plays one thing by the rules of Kubernetes or AWS. Invocations reach them by the ports of their
// controllers (ports.go), over a network that breaks (network.go). Steps (steps.go) are told to the invariants, a table
// in invariants.go; those at rest are in invariants_rest.go. The world refuses to know our decisions: its scheduler
// binds pods to whatever node takes them.
package sim
