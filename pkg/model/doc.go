// Package model holds the plain values that decisions take and return, and small pure rules about them.
//
// Start with cluster.Snapshot (what decisions see) and plan.Plan (what they answer). Amounts are integers with the unit
// in their name; money is USD per hour. The packages below import only api and each other. They refuse to know AWS,
// Kubernetes clients and the clock.
package model
