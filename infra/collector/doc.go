// Package collector holds tests that send traces to the receiver of the OpenTelemetry Collector. It is a module of its
// own, so that nothing else is built with it.
package collector
