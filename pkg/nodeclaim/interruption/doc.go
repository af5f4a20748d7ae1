// Package interruption decides what a notice about an instance means for the cluster.
//
// It knows which claim an instance belongs to, what is marked and deleted, and by when its pods must be gone, and in
// replace_request.go when a node that is to be left with a replacement first may go. It refuses to know how a notice
// arrives. Notices may be late, repeated and out of order: a decision depends on what the cluster says now and never
// makes a date later. Why replacements come first: pkg/designs/replacement-first.md.
package interruption
