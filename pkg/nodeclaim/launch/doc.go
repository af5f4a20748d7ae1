// Package launch decides what to ask of EC2 for one NodeClaim, and what a granted request means for the claim.
//
// It knows the launch-time rules: which offerings, subnets, images, templates and tags. It refuses
// to know the SDK and who sends the request. An Order is a plain value: equal inputs give equal orders.
package launch
