// Package testing holds what tests and the local environment need, and nothing that is deployed.
//
// Start with scenario (worlds as text), plancheck (a judge of plans that shares no code with the packer), fake (the
// ports of pkg/controllers in memory) and sim (a cluster and EC2 in virtual time, with faults drawn by a seed). It
// imports no SDK.
package testing
