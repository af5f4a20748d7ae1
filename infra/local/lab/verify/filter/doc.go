// Package filter holds what Joiner decides against kube-scheduler's Filter plugins, which the programs of
// controlplane/filter run: one for each minor version of Kubernetes.
package filter
