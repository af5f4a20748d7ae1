// Package fleettest holds the contract tests of pkg/fleet against the emulated EC2, over the real wire protocol.
package fleettest
