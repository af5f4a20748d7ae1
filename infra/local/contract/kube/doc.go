// Package kube tests pkg/providers/kube against a real API server.
package kube
