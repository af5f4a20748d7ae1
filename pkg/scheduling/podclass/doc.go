// Package podclass groups the pods that need a place into classes that no rule tells apart, and says what each of them
// demands of a node.
//
// Start with ReadClasses in share.go, which makes classes (groups.go). A Class gives up one preference after the other:
// each step is a RelaxedPod with its rules and its Admission, the alternatives of which a node must meet one. It knows
// pods and DaemonSets. It refuses to know nodes, offerings and prices: those who ask an Admission about them write the
// answers down in it.
package podclass
