// Package provisioning is the decision of one pass of provision as a whole: which nodes that may go are emptied first,
// where the pods go, which new nodes are kept for them, and what static pools lack or have too many. The function, the
// command line and replays ask it alike.
package provisioning
