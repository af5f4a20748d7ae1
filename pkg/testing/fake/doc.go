// Package fake is a cluster and an AWS account in memory, seen through the ports of the controllers.
//
// It keeps what controllers may rely on: versions and conflicts of claims, finalizers, budgets of the eviction API,
// client tokens, unavailable offerings, lists that show an instance late, and calls that fail before or after the deed.
// It refuses to know decisions: pods are bound by a little scheduler of its own. Time stands still but for Advance and
// SkipTime. A World may be used by several goroutines.
//
// Start with World. Each kind of object is a part with its own state; engine is what they share.
package fake
