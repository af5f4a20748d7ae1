// Package discovery tests pkg/providers/discovery against the emulated EC2, SSM and pricing.
package discovery
