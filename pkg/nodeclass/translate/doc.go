// Package translate turns Kubernetes objects into the plain values that decisions see, and some of them back.
//
// Start with Pod, Node, Claim and Pool. What a pod asks for and Joiner does not model becomes words in Unmodelled.
// Volumes need more than the pod: Storage has what they refer to. Devices of DRA drivers become extended resources.
// It makes no request: whoever has the objects, from an API server or from a file, gives them.
package translate
