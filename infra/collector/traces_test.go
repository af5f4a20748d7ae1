package collector_test

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/trace"
	"joiner.sh/pkg/providers/otlp"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// startReceiver is the receiver of the OpenTelemetry Collector on loopback, with what it took and its address.
func startReceiver(t *testing.T) (*consumertest.TracesSink, string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	factory, sink := otlpreceiver.NewFactory(), &consumertest.TracesSink{}
	cfg := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	http := cfg.HTTP.GetOrInsertDefault()
	http.ServerConfig.Endpoint = address
	r, err := factory.CreateTraces(t.Context(), receivertest.NewNopSettings(factory.Type()), cfg, sink)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return sink, "http://" + address + string(http.TracesURLPath)
}

// spansOf are all spans that were taken.
func spansOf(sink *consumertest.TracesSink) (out []ptrace.Span) {
	for _, t := range sink.AllTraces() {
		for _, resource := range t.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, s := range scope.Spans().All() {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

func claimOf(s ptrace.Span) string {
	v, _ := s.Attributes().Get(trace.KeyNodeClaim)
	return v.AsString()
}

// TestTheCollectorTakesAPass: what provision sends when it launches nodes is what the OpenTelemetry Collector reads, and
// the stages of the pass add up to it.
func TestTheCollectorTakesAPass(t *testing.T) {
	sink, address := startReceiver(t)
	f := controllertest.WaitingPods(t)
	tracer := &controllers.Tracer{Now: time.Now, Log: slog.New(slog.DiscardHandler), Writer: &otlp.Writer{URL: address, Version: "1.2.3",
		Resource: []trace.Attribute{trace.Text("service.name", "joiner"), trace.Text("k8s.cluster.name", "shop")}}}
	ctx, end := tracer.BeginInvocation(t.Context(), "provision", trace.Text("faas.name", "joiner-shop-provision"))
	err := f.Provision(f.World.Ports(fake.Fault{})).Run(ctx, f.Once())
	if end(err); err != nil {
		t.Fatal(err)
	}
	if len(sink.AllTraces()) != 1 {
		t.Fatalf("the collector took %d requests", len(sink.AllTraces()))
	}
	about := sink.AllTraces()[0].ResourceSpans().At(0).Resource().Attributes()
	if name, _ := about.Get("service.name"); name.AsString() != "joiner" {
		t.Errorf("resource %v", about.AsRaw())
	}
	all := spansOf(sink)
	find := func(name string) ptrace.Span {
		i := slices.IndexFunc(all, func(s ptrace.Span) bool { return s.Name() == name })
		if i < 0 {
			t.Fatalf("no span %q", name)
		}
		return all[i]
	}
	root, pass := find("provision"), find("pass")
	if !root.ParentSpanID().IsEmpty() || pass.ParentSpanID() != root.SpanID() || pass.TraceID() != root.TraceID() {
		t.Error("the pass is not below the invocation")
	}
	var stages []ptrace.Span
	for _, s := range all {
		if s.ParentSpanID() == pass.SpanID() {
			stages = append(stages, s)
		}
	}
	slices.SortStableFunc(stages, func(a, b ptrace.Span) int { return cmp.Compare(a.StartTimestamp(), b.StartTimestamp()) })
	var sum time.Duration
	for _, s := range stages {
		sum += s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime())
	}
	if took := pass.EndTimestamp().AsTime().Sub(pass.StartTimestamp().AsTime()); sum != took || len(stages) < 8 {
		t.Errorf("%d stages take %s, the pass %s", len(stages), sum, took)
	}
	for _, c := range f.World.Claims() {
		own := trace.OfClaim(c)
		i := slices.IndexFunc(all, func(s ptrace.Span) bool { return s.Name() == trace.LaunchSpan && claimOf(s) == c.Name })
		if i < 0 || [16]byte(all[i].TraceID()) != own.Trace || all[i].Links().Len() != 1 || all[i].Links().At(0).SpanID() != pass.SpanID() {
			t.Errorf("the launch of NodeClaim %s is not told in its trace", c.Name)
		}
		if !slices.ContainsFunc(all, func(s ptrace.Span) bool { return s.Name() == "CreateFleet" && strings.Contains(claimOf(s), c.Name) }) {
			t.Errorf("no CreateFleet names NodeClaim %s", c.Name)
		}
	}
}

// TestTheCollectorRefuses what is no message of the protocol, so that the test above cannot pass by itself.
func TestTheCollectorRefuses(t *testing.T) {
	sink, address := startReceiver(t)
	w := &otlp.Writer{URL: strings.TrimSuffix(address, "traces") + "metrics"}
	err := w.WriteSpans(t.Context(), []trace.Span{{Place: trace.Place{Trace: trace.ID{1}, Span: trace.SpanID{1}}, Name: "pass"}})
	if err == nil || len(spansOf(sink)) > 0 {
		t.Errorf("error %v, spans %d", err, len(spansOf(sink)))
	}
}
