// Package provision finds pods that have no node and launches nodes for them. Read provision.go: Run, runPass and
// runLocked are the pass from the pods to the launches; launch.go and batch.go ask EC2.
//
// What to launch is for provisioning and scheduling to decide. No other function launches.
package provision
