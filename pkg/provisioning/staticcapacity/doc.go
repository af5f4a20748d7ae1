// Package staticcapacity keeps pools with a fixed number of nodes at that number.
//
// It knows how many nodes such a pool has, lacks and has too many, and which of these go first. It refuses to know pods
// that wait: they may use the nodes of static pools and make none there. Replacing nodes that have drifted is for
// package disruption, which asks here whether the pool has room for one more.
package staticcapacity
