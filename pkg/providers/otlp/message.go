package otlp

import (
	"strings"
	"time"

	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	resourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"joiner.sh/pkg/model/trace"
)

const mostError = 1024 // bytes of the text of an error

// encode is the message of the spans. TracesData has the wire form of an ExportTraceServiceRequest.
func encode(resource []trace.Attribute, version string, spans []trace.Span) ([]byte, error) {
	out := make([]*tracev1.Span, len(spans))
	for i, s := range spans {
		out[i] = convertSpan(s)
	}
	return proto.Marshal(&tracev1.TracesData{ResourceSpans: []*tracev1.ResourceSpans{{
		Resource: &resourcev1.Resource{Attributes: convertAttributes(resource)},
		ScopeSpans: []*tracev1.ScopeSpans{{Scope: &commonv1.InstrumentationScope{Name: "joiner", Version: version},
			Spans: out}}}}})
}

func convertSpan(s trace.Span) *tracev1.Span {
	out := &tracev1.Span{TraceId: s.Trace[:], SpanId: s.Span[:], Name: validText(s.Name),
		Kind:              tracev1.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: nanoseconds(s.Start), EndTimeUnixNano: nanoseconds(s.End),
		Attributes: convertAttributes(s.Attributes)}
	if s.Parent != (trace.SpanID{}) {
		out.ParentSpanId = s.Parent[:]
	}
	for _, l := range s.Links {
		out.Links = append(out.Links, &tracev1.Span_Link{TraceId: l.Trace[:], SpanId: l.Span[:]})
	}
	if s.Error != "" {
		out.Status = &tracev1.Status{Code: tracev1.Status_STATUS_CODE_ERROR,
			Message: validText(s.Error[:min(len(s.Error), mostError)])}
	}
	return out
}

// nanoseconds is the time since 1970; a time before that is none.
func nanoseconds(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }

// validText is the text as protobuf takes it.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func convertAttributes(all []trace.Attribute) []*commonv1.KeyValue {
	out := make([]*commonv1.KeyValue, len(all))
	for i, a := range all {
		out[i] = &commonv1.KeyValue{Key: a.Key, Value: convertValue(a)}
	}
	return out
}

func convertValue(a trace.Attribute) *commonv1.AnyValue {
	switch len(a.Texts) {
	case 0:
		return &commonv1.AnyValue{Value: &commonv1.AnyValue_IntValue{IntValue: a.Number}}
	case 1:
		return textValue(a.Texts[0])
	}
	list := &commonv1.ArrayValue{Values: make([]*commonv1.AnyValue, len(a.Texts))}
	for i, text := range a.Texts {
		list.Values[i] = textValue(text)
	}
	return &commonv1.AnyValue{Value: &commonv1.AnyValue_ArrayValue{ArrayValue: list}}
}

func textValue(s string) *commonv1.AnyValue {
	return &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: validText(s)}}
}
