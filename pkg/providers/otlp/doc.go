// Package otlp sends spans to an endpoint of OpenTelemetry: OTLP over HTTP, as protobuf.
//
// Start with Writer. The messages are OpenTelemetry's own; its exporter would make a function's program more than twice
// as large. It refuses to know what the spans are about, and how requests are authenticated. Limits: one request, which
// is sent once more where the endpoint asks for that; the context bounds all of it.
package otlp
