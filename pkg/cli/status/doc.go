// Package status says how a cluster stands: its nodes by pool with how full they are, what they cost, how old they are
// and whether they may be disrupted, and the pods that wait for a node.
//
// It knows a snapshot and what the packer and package disruption say about it, and draws the picture as a table and as
// a page. It refuses to know where the snapshot comes from and changes nothing.
package status
