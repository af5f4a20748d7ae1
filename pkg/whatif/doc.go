// Package whatif finds the smallest change of a cluster that changes an answer of Joiner: that a pod gets no node, that
// a node stays.
//
// Start with ForPod in pod.go. An edit is one change of one object; search.go makes edits in a copy of the snapshot and
// asks the decision again. The package knows what can be edited, and no rule: whether an edit helps says the packer, or
// the evaluator of disruption. Its work is counted, so that it finds the same on every machine. It refuses to know who
// reads and changes objects; edit.go says how an edit is written into an object that is given.
package whatif
