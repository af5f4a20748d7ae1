// Package explain says in words why a pod, a node or a NodePool is as it is: why it waits, why it is of this type, why
// disruption takes or spares it.
//
// It knows a snapshot, what the functions would decide about it, and the records of what they decided before. It
// refuses to know how these were read.
package explain
