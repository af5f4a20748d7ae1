// Package nodeclaim holds the decisions about one NodeClaim, from its launch to its end.
//
// Start with launch.ChooseOrder (what to ask of CreateFleet), lifecycle.Next (the next step of a NodeClaim), drain.Next
// (which pods to evict) and interruption (what a notice means). awserrors says what AWS error codes mean. All are pure.
// They refuse to know who applies the steps.
package nodeclaim
