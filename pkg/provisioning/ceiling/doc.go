// Package ceiling keeps the cluster as a whole below the bounds of the settings maxNodes, maxNodesPerMinute and
// maxUSDPerHour, and slows launches down while the API server refuses requests as too many.
//
// It is the one place that says whether an instance may start, whatever for. LimitPlan bounds what a pass of provision
// makes, WithinPace which stopped instances it starts, HeldClaims which stored NodeClaims wait with their launch, and
// Refusal what disruption may begin. Every NodeClaim that exists counts, so that a lost reply, a crash or another
// version of the function cannot be forgotten.
// Nothing that runs is ever ended for a bound.
package ceiling
