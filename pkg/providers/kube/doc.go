// Package kube reads and writes the Kubernetes objects that Joiner works with, as the plain values of
// pkg/model/cluster.
//
// It knows the API server: paths, encodings, paging, watches, preconditions and which failures are worth another try.
// It refuses to decide anything: what a pod needs and what becomes of a claim is somebody else's business. Core objects
// travel as protobuf and custom resources as JSON, through client-go's REST client with a scheme of our own, because a
// whole clientset costs every function start-up time. ClusterCache keeps what was read: pkg/designs/watch-cache.md says
// why and how.
package kube
