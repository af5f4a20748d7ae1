// Package lifecycle decides the next step in the life of every NodeClaim, node and instance.
//
// It knows registration, initialization, time-outs, expiration, repair, draining, termination and leaks, and what pools
// count and remember of their nodes. It takes one step for each object and keeps no state: the next pass sees the
// result and takes the next one. Of most instances it is enough to know how they were some minutes ago;
// DoubtfulInstances are the others. Before something is taken away its instances are listed as they are now, and before
// the claims, else a claim's instance could look leaked.
//
// Times of objects are compared with the snapshot's, so a clock that is off moves every limit by as much, in either
// direction. Nothing breaks by it: an instance is never called leaked while a claim's UID is in its tags, a launch is
// repeated with the same token, and a deadline once written stays.
package lifecycle
