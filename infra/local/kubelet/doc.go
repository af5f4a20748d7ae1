// Package kubelet turns instances of the emulated EC2 into nodes of the local control plane.
//
// It plays the part of the kubelet's registration, with the instance's user data as its only source and under the
// kubelet's own user name, so that NodeRestriction judges it; and the little of the cloud-controller-manager that EKS
// runs: provider id, zone and type labels, the end of the uninitialized taint, approval of serving certificates, the
// end of the Node; and DRA drivers, which publish what they are told. kwok plays the running kubelet after that. It
// knows nothing of EC2's API or NodeClaims, and of pods only that they end with their Node.
package kubelet
