// Package ec2 holds the contract tests of pkg/providers/fleet against the emulated EC2, over the real wire protocol.
package ec2
