// Package trace holds spans as OpenTelemetry knows them, as plain values, and the spans of a NodeClaim's way into
// service.
//
// Start with Span, then with Launch. It refuses to know how spans are sent.
package trace

import "time"

// ID names a trace.
type ID [16]byte

// SpanID names a span in its trace.
type SpanID [8]byte

// Place is where a span is.
type Place struct {
	Trace ID
	Span  SpanID
}

// Attribute is one thing that is known of a span.
type Attribute struct {
	Key    string
	Texts  []string // one is a text, several are a list of texts
	Number int64    // where there is no text
}

// Text is an attribute with a text.
func Text(key, value string) Attribute { return Attribute{Key: key, Texts: []string{value}} }

// Number is an attribute with a number.
func Number(key string, n int64) Attribute { return Attribute{Key: key, Number: n} }

// Keys of attributes.
const (
	KeyNodeClaim = "k8s.nodeclaim.name"
	KeyNode      = "k8s.node.name"
	KeyNodePool  = "karpenter.sh/nodepool"
	KeyDropped   = "joiner.dropped_spans"
)

// mostNames bounds the NodeClaims that a span names.
const mostNames = 100

// NodeClaims is the attribute that names NodeClaims, the first hundred where there are more.
func NodeClaims(names ...string) Attribute {
	return Attribute{Key: KeyNodeClaim, Texts: names[:min(len(names), mostNames)]}
}

// Span is a piece of work with its beginning and its end.
type Span struct {
	Place
	Parent     SpanID // zero for the first span of a trace
	Name       string
	Start, End time.Time
	Attributes []Attribute
	Links      []Place
	Error      string // why it failed; empty where it did not
}
