package otlp_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"joiner.sh/pkg/model/trace"
	"joiner.sh/pkg/providers/otlp"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// spans are a pass with a change that failed, and the span of a NodeClaim that links to it.
func spans() []trace.Span {
	pass := trace.Span{Place: trace.Place{Trace: trace.ID{1}, Span: trace.SpanID{2}}, Name: "pass", Start: noon(), End: noon().Add(time.Second)}
	return []trace.Span{pass,
		{Place: trace.Place{Trace: trace.ID{1}, Span: trace.SpanID{3}}, Parent: pass.Span, Name: "CreateFleet", Start: noon(), End: noon().Add(time.Millisecond),
			Attributes: []trace.Attribute{trace.NodeClaims("a", "b"), trace.Number("n", 7)}, Error: "no \xff capacity" + strings.Repeat("!", 2000)},
		{Place: trace.Place{Trace: trace.ID{9}, Span: trace.SpanID{4}}, Name: "launch", Start: noon(), End: noon(), Attributes: []trace.Attribute{trace.NodeClaims("a")},
			Links: []trace.Place{pass.Place}}}
}

// collector takes requests as OpenTelemetry's own messages say them.
type collector struct {
	t        *testing.T
	answers  []func(http.ResponseWriter)
	requests []*http.Request
	got      []*tracev1.TracesData
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		c.t.Error(err)
		return
	}
	body, err := io.ReadAll(z)
	if err != nil {
		c.t.Error(err)
	}
	m := &tracev1.TracesData{}
	if err := proto.Unmarshal(body, m); err != nil {
		c.t.Error(err)
	}
	c.requests, c.got = append(c.requests, r), append(c.got, m)
	if n := len(c.requests); n <= len(c.answers) {
		c.answers[n-1](w)
	}
}

func serve(t *testing.T, answers ...func(http.ResponseWriter)) (*collector, *otlp.Writer) {
	t.Helper()
	c := &collector{t: t, answers: answers}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return c, &otlp.Writer{URL: server.URL + "/v1/traces", Version: "1.2.3", Resource: []trace.Attribute{trace.Text("service.name", "joiner")}}
}

func says(status int, header ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "because")
	}
}

// TestSpansAsOpenTelemetryReadsThem, by the messages that it generates from its protocol.
func TestSpansAsOpenTelemetryReadsThem(t *testing.T) {
	c, w := serve(t)
	if err := w.WriteSpans(t.Context(), spans()); err != nil {
		t.Fatal(err)
	}
	r := c.requests[0]
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%s %s %v", r.Method, r.URL.Path, r.Header)
	}
	want := &tracev1.TracesData{}
	if err := protojson.Unmarshal([]byte(`{"resourceSpans": [{
  "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "joiner"}}]},
  "scopeSpans": [{"scope": {"name": "joiner", "version": "1.2.3"}, "spans": [
    {"traceId": "AQAAAAAAAAAAAAAAAAAAAA==", "spanId": "AgAAAAAAAAA=", "name": "pass", "kind": "SPAN_KIND_INTERNAL",
     "startTimeUnixNano": "1767268800000000000", "endTimeUnixNano": "1767268801000000000"},
    {"traceId": "AQAAAAAAAAAAAAAAAAAAAA==", "spanId": "AwAAAAAAAAA=", "parentSpanId": "AgAAAAAAAAA=", "name": "CreateFleet", "kind": "SPAN_KIND_INTERNAL",
     "startTimeUnixNano": "1767268800000000000", "endTimeUnixNano": "1767268800001000000",
     "attributes": [
       {"key": "k8s.nodeclaim.name", "value": {"arrayValue": {"values": [{"stringValue": "a"}, {"stringValue": "b"}]}}},
       {"key": "n", "value": {"intValue": "7"}}],
     "status": {"code": "STATUS_CODE_ERROR", "message": "no � capacity`+strings.Repeat("!", 1024-len("no \xff capacity"))+`"}},
    {"traceId": "CQAAAAAAAAAAAAAAAAAAAA==", "spanId": "BAAAAAAAAAA=", "name": "launch", "kind": "SPAN_KIND_INTERNAL",
     "startTimeUnixNano": "1767268800000000000", "endTimeUnixNano": "1767268800000000000",
     "attributes": [{"key": "k8s.nodeclaim.name", "value": {"stringValue": "a"}}],
     "links": [{"traceId": "AQAAAAAAAAAAAAAAAAAAAA==", "spanId": "AgAAAAAAAAA="}]}]}]}]}`), want); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(want, c.got[0]) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(protojson.Format(want), protojson.Format(c.got[0])))
	}
}

// partly is an ExportTraceServiceResponse that rejects spans.
func partly(w http.ResponseWriter) {
	part := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 2)
	part = protowire.AppendString(protowire.AppendTag(part, 2, protowire.BytesType), "too old")
	_, _ = w.Write(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), part))
}

// TestAnswers: which of them bring a second request, and what is told.
func TestAnswers(t *testing.T) {
	well := says(http.StatusOK)
	for name, c := range map[string]struct {
		answers  []func(http.ResponseWriter)
		requests int
		want     string // "" for none
	}{
		"taken":                     {[]func(http.ResponseWriter){func(http.ResponseWriter) {}}, 1, ""},
		"taken, in other words":     {[]func(http.ResponseWriter){well}, 1, ""},
		"partly":                    {[]func(http.ResponseWriter){partly}, 1, "took not all: 2 spans are rejected: too old"},
		"busy, then well":           {[]func(http.ResponseWriter){says(http.StatusServiceUnavailable), well}, 2, ""},
		"busy for ever":             {[]func(http.ResponseWriter){says(http.StatusTooManyRequests), says(http.StatusTooManyRequests), well}, 2, "says 429 Too Many Requests"},
		"busy for longer than we":   {[]func(http.ResponseWriter){says(http.StatusTooManyRequests, "Retry-After", "3600"), well}, 1, "says 429"},
		"nobody known":              {[]func(http.ResponseWriter){says(http.StatusUnauthorized, "Content-Type", "text/plain")}, 1, "401 Unauthorized: because: check the setting tracesSecret"},
		"not there":                 {[]func(http.ResponseWriter){says(http.StatusNotFound)}, 1, "check the path of the setting tracesURL"},
		"elsewhere, not followed":   {[]func(http.ResponseWriter){says(http.StatusTemporaryRedirect, "Location", "http://127.0.0.1:1/")}, 1, "says 307"},
		"broken for good, once":     {[]func(http.ResponseWriter){says(http.StatusBadRequest)}, 1, "says 400"},
		"a gateway without its own": {[]func(http.ResponseWriter){says(http.StatusBadGateway), says(http.StatusGatewayTimeout)}, 2, "says 504"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, w := serve(t, c.answers...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := w.WriteSpans(ctx, spans())
			if len(to.requests) != c.requests || (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d requests, error %v; want %d and %q", len(to.requests), err, c.requests, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "/v1/traces\"") {
				t.Errorf("it tells the address: %v", err)
			}
			if refused, ok := errors.AsType[*otlp.RefusedError](err); err != nil && (!ok || refused.Status == 0) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestTheAddressIsNotTold: its path may be a secret.
func TestTheAddressIsNotTold(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	for _, address := range []string{server.URL + "/s3cret", "http://%/s3cret"} {
		err := (&otlp.Writer{URL: address}).WriteSpans(t.Context(), spans())
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("error %v", err)
		}
	}
}
