package e2e_test

import (
	"cmp"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"joiner.sh/infra/local/env"
)

// collector keeps what it is sent as OpenTelemetry's own messages say it.
type collector struct {
	mu    sync.Mutex
	spans []*tracev1.Span
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	body, err := io.ReadAll(z)
	m := &tracev1.TracesData{}
	if err != nil || proto.Unmarshal(body, m) != nil || r.URL.Path != "/v1/traces" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range m.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// named are the spans of that name so far.
func (c *collector) named(name string) (out []*tracev1.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out
}

// below are the spans below one, in their order.
func (c *collector) below(parent *tracev1.Span) (out []*tracev1.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if string(s.TraceId) == string(parent.TraceId) && string(s.ParentSpanId) == string(parent.SpanId) {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b *tracev1.Span) int { return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) })
	return out
}

func took(s *tracev1.Span) time.Duration {
	return time.Duration(s.EndTimeUnixNano - s.StartTimeUnixNano)
}

func attribute(s *tracev1.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return cmp.Or(a.Value.GetStringValue(), a.Value.String())
		}
	}
	return ""
}

// TestTracesSayWhereTimeWent: from the pod to the initialized node, the functions' own binaries send spans that nest. The
// stages of each pass add up to it, and the trace of the NodeClaim covers its way without a gap.
func TestTracesSayWhereTimeWent(t *testing.T) {
	to := &collector{}
	server := httptest.NewServer(to)
	t.Cleanup(server.Close)
	w := start(t, func(o *env.Options) {
		o.Env["TRACES_URL"] = server.URL + "/v1/traces"
		o.BootDelay = 2 * time.Second // more than what Kubernetes rounds times by
	})
	w.ready()
	began := time.Now()
	w.run(deployment{name: "web", replicas: 1})
	w.until("the NodeClaim's way is told", func() (string, bool) {
		n := len(to.named("NodeClaim"))
		return fmt.Sprint(n, " spans"), n > 0
	}, "lifecycle")
	whole, claim := time.Since(began), w.oneClaim()

	for _, function := range []string{"provision", "lifecycle", "refresh"} {
		if len(to.named(function)) == 0 {
			t.Errorf("no span of an invocation of %s", function)
		}
		for _, s := range to.named(function) {
			if len(s.ParentSpanId) > 0 || attribute(s, "faas.name") != w.FunctionName(function) || attribute(s, "faas.invocation_id") == "" {
				t.Errorf("the invocation is %v", s)
			}
		}
	}
	if len(to.named("pass")) == 0 {
		t.Fatal("no span of a pass")
	}
	for _, pass := range to.named("pass") {
		sum := time.Duration(0)
		for _, stage := range to.below(pass) {
			sum += took(stage)
			for _, s := range to.below(stage) {
				if s.StartTimeUnixNano < stage.StartTimeUnixNano || s.EndTimeUnixNano > stage.EndTimeUnixNano {
					t.Errorf("%s is longer than its stage %s", s.Name, stage.Name)
				}
			}
		}
		if sum != took(pass) {
			t.Errorf("the stages of a pass take %s, the pass %s", sum, took(pass))
		}
	}
	for _, name := range []string{"create NodeClaim", "CreateFleet", "write NodeClaim", "register", "initialize"} {
		if all := to.named(name); len(all) != 1 || attribute(all[0], "k8s.nodeclaim.name") != claim.GetName() {
			t.Errorf("%d spans %q: %v; want one of NodeClaim %s", len(all), name, all, claim.GetName())
		}
	}

	way := to.named("NodeClaim")[0]
	if len(to.named("NodeClaim")) != 1 || attribute(way, "k8s.nodeclaim.name") != claim.GetName() || took(way) > whole+2*time.Second {
		t.Errorf("the way of NodeClaim %s of %s is %v", claim.GetName(), whole, to.named("NodeClaim"))
	}
	at, names := way.StartTimeUnixNano, []string{}
	for _, s := range to.below(way) {
		if s.StartTimeUnixNano > at {
			t.Errorf("%s begins %s after the span before it", s.Name, time.Duration(s.StartTimeUnixNano-at))
		}
		if len(s.Links) != 1 || !slices.ContainsFunc(to.named("pass"), func(p *tracev1.Span) bool { return string(p.SpanId) == string(s.Links[0].SpanId) }) {
			t.Errorf("%s links to no pass", s.Name)
		}
		at, names = s.EndTimeUnixNano, append(names, s.Name)
	}
	if got := strings.Join(names, " "); !strings.HasSuffix(got, "launch boot registration initialization") || at+uint64(time.Second) < way.EndTimeUnixNano {
		t.Errorf("trace %s of the NodeClaim has %s", hex.EncodeToString(way.TraceId), got)
	}
}
