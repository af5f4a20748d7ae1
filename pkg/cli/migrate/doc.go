// Package migrate says what a cluster needs before Joiner takes it over from Karpenter or from Cluster Autoscaler, and
// before Joiner gives it back.
//
// It knows what other autoscalers leave on objects and what Joiner leaves there, and which of it would cost a node. It
// refuses to know how facts are read and changes are written. Nothing in it replaces a node: Joiner uses Karpenter's
// objects, labels, finalizers, hashes and tags, so that a takeover is a matter of who runs.
package migrate
