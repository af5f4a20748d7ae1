// Package sim runs the functions against a simulated cluster and EC2 in virtual time, where everything goes wrong that
// can.
//
// A seed decides all of it: how long calls take, which fail, when an invocation dies, what users do and what EC2 has.
// The same seed gives the same story, line for line. Invariants are checked at every step and at rest; see check.go and
// rest.go. The world knows the rules of Kubernetes and EC2, and refuses to know our decisions: its scheduler binds pods
// to whatever node takes them.
package sim
