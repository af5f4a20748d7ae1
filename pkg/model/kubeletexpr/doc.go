// Package kubeletexpr evaluates the CEL expressions that spec.kubelet of an EC2NodeClass may hold in maxPods,
// kubeReserved and systemReserved, for one instance type at a time. Start with Compile.
package kubeletexpr
