// Package kubeletexpr evaluates the CEL expressions that spec.kubelet of an EC2NodeClass may hold in maxPods,
// kubeReserved and systemReserved, for one instance type at a time. Start with Compile.
//
// It knows the part of CEL that computes with numbers, texts and lists of them, and CEL's types, overflows and errors.
// Maps, timestamps, unsigned numbers, bytes, macros and conversions to text are errors of Compile.
package kubeletexpr
