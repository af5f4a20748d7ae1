// Package stoppedcapacity keeps booted nodes stopped for CapacityBuffers, and says when one is started.
//
// It knows which stopped nodes pods may have, what a start may cost more than a launch, which nodes the buffers lack
// and which they have too many. It refuses to know how a node gets there: lifecycle warms and stops it, provision
// launches and starts it. Nodes of stopped capacity are no places for other decisions, and count for limits.
// pkg/designs/stopped-capacity.md says why.
package stoppedcapacity
