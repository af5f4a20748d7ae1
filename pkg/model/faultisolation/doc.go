// Package faultisolation takes a decision about as much of a snapshot as it can be taken about, where it panics about
// the whole.
//
// It knows what can be left out of a snapshot: pods that are alike, NodePools, NodeOverlays, DaemonSets, buffers of
// stopped capacity, NodeClaims that would be disrupted. It finds by halving which of them a decision fails about, in a
// bounded number of tries, and what it finds is left out of later decisions too, for a while. Nothing is left out where
// the decision works without what only makes it better. It refuses to know what is decided. A decision that does not
// fail is taken once.
//
// Start with Decide. It cannot help where a decision never ends.
package faultisolation
