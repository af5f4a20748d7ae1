// Package prometheus holds the Grafana dashboard for what Joiner sends by remote write, and tests that send to
// Prometheus's own receiver, storage and query engine. It is a module of its own, so that nothing else is built with
// them.
package prometheus
