// Package stoppedcapacity starts the instances that provision wants started for pods.
//
// Start with Starter.StartNodes. What is to be started pkg/provisioning/stoppedcapacity decides.
package stoppedcapacity
