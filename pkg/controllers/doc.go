// Package controllers is the shell: it observes, asks a decision package what to do, and has it done through ports.
//
// To follow one pod read provision.go (the pod is found, packed, and a node launched for it), launch.go, lifecycle.go
// (the node is brought into service and out of it again) and interruption.go (a notice deletes its NodeClaim). It
// decides nothing and knows no SDK. A pass writes only with permission (permission.go); without it, it logs what it
// would do. Every port says whether repeating a call is safe.
package controllers
