// Package verify lets the real kube-scheduler judge a plan as it comes true: the pods wait, the planned nodes come one
// after another in any order, the scheduler places pods as it likes, and those that stay pending are counted.
//
// It knows the workload format and Kubernetes' API. What a plan is made of it takes from the planner it is given, and
// which nodes are held for which pods from package nomination, through the adapter that the functions use. It places no
// pod itself but those that the workload says are running. A pod that pre-empts others is seen by its victims missing.
package verify
