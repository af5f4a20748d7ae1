// Package setup puts into a cluster what Joiner's functions need there, and takes Joiner's hold off it again.
//
// It knows the order in which things go in, how a CRD that is there already is upgraded, and what to tell a person when
// the cluster cannot be reached. It refuses to know CloudFormation and how objects travel. What it installed stays in
// the cluster when the stack goes: deleting a CRD would delete the user's NodePools.
package setup
