// Package rollout decides how many nodes may have a changed image or EC2NodeClass, and when it is trusted.
//
// Start with Advance, which takes the steps of one NodeRollout, and Gate, which tells the rest what that allows: which
// revision NodePools launch with, how many nodes may still get the one that is tried, and what nodes are compared with
// for drift. Without a NodeRollout both change nothing. It refuses to know how revisions are stored and who launches.
// Why: pkg/designs/rollouts.md.
package rollout
