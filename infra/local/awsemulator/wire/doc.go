// Package wire turns the bytes of AWS' protocols (EC2 query, AWS query, AWS JSON, REST JSON, REST XML, RPC CBOR) into
// Go structs and back, and gives one failure the form that each protocol has for it. It knows no service and no state.
package wire
