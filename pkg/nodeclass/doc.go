// Package nodeclass decides what the status of an EC2NodeClass and of a NodePool says, from what was found in AWS and
// in the cluster.
//
// It knows the conditions, reasons and orders. It refuses to know how things are found.
package nodeclass
