// Package requirements is the algebra of node requirements: what label values a pod, a pool or a node allows for a key.
//
// It knows sets, complements of sets and integer bounds. It refuses to know where requirements come
// from. Values are immutable; all lists are sorted, so that equal requirements print and compare alike.
package requirements
