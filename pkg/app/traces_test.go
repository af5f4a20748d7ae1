package app

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/trace"
	"joiner.sh/pkg/providers/otlp"
	"joiner.sh/pkg/providers/prometheus"
	"joiner.sh/pkg/settings"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// tracesTo is the tracer of an app with these settings.
func tracesTo(log io.Writer, set settings.Traces) *controllers.Tracer {
	return newTracer(&App{set: settings.Values{ClusterName: "shop", Traces: set}, log: slog.New(slog.NewTextHandler(log, nil))})
}

// TestABadCollectorDelaysNoLaunch: instances are there before anything is sent, the invocation succeeds, and its end
// waits two seconds at most. The next one, a minute later, does not wait at all.
func TestABadCollectorDelaysNoLaunch(t *testing.T) {
	for name, endpoint := range badEndpoints() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad, f := endpoint(t), controllertest.WaitingPods(t)
			var log bytes.Buffer
			tracer := tracesTo(&log, settings.Traces{URL: bad.URL + "/v1/traces"})
			if bad.Client != nil {
				tracer.Writer.(*otlp.Writer).Transport = prometheus.NewTransport(bad.Client.Transport, nil)
			}
			a := &App{tracer: tracer}
			invoke := func() (launched, took time.Duration) {
				began := time.Now()
				ctx, end := beginTrace(t.Context(), a, "provision")
				err := f.Provision(f.World.Ports(fake.Fault{})).Run(ctx, f.Once())
				launched = time.Since(began)
				end(err)
				if err != nil {
					t.Errorf("an invocation ends with %v", err)
				}
				return launched, time.Since(began)
			}
			if launched, took := invoke(); launched > slack || took > sendBudget+slack || len(f.World.Instances()) == 0 {
				t.Errorf("%d instances after %s, the end after %s", len(f.World.Instances()), launched, took)
			}
			f.World.RunApp("more", 2, controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000)))
			if _, took := invoke(); took > slack {
				t.Errorf("the next invocation took %s", took)
			}
			if n := strings.Count(log.String(), "traces cannot be sent"); n != 1 {
				t.Errorf("told %d times:\n%s", n, log.String())
			}
		})
	}
}

// secretOf answers for Secrets Manager.
type secretOf struct{ text string }

// Do returns the secret.
func (s secretOf) Do(r *http.Request) (*http.Response, error) {
	body, err := json.Marshal(map[string]string{"SecretString": s.text})
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.1"}}, Request: r,
		Body: io.NopCloser(bytes.NewReader(body))}, err
}

// TestTracesAreAuthenticatedAsMetricsAre: with the token of the secret, to a collector whose certificate its ca signed.
func TestTracesAreAuthenticatedAsMetricsAre(t *testing.T) {
	authorization := make(chan string, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { authorization <- r.Header.Get("Authorization") }))
	t.Cleanup(server.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	secret, err := json.Marshal(map[string]string{"token": "t0ken", "ca": ca})
	if err != nil {
		t.Fatal(err)
	}
	set := settings.Traces{URL: server.URL + "/v1/traces", Secret: "arn:aws:secretsmanager:us-west-2:111122223333:secret:c-d"}
	tracer := newTracer(&App{set: settings.Values{Traces: set}, log: slog.New(slog.DiscardHandler),
		aws: aws.Config{Region: "us-west-2", HTTPClient: secretOf{string(secret)}, Credentials: aws.AnonymousCredentials{}}})
	if err := tracer.Writer.WriteSpans(t.Context(), []trace.Span{{Name: "pass"}}); err != nil {
		t.Fatal(err)
	}
	if got := <-authorization; got != "Bearer t0ken" {
		t.Errorf("it sends %q", got)
	}
}

// TestTracesAreSentAsSet: with the cluster's name, by the collector's own messages; and nothing without the setting, or
// with one that is refused.
func TestTracesAreSentAsSet(t *testing.T) {
	var requests atomic.Int64
	got := make(chan *tracev1.TracesData, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, _ := io.ReadAll(z)
		m := &tracev1.TracesData{}
		if err := proto.Unmarshal(body, m); err != nil {
			t.Error(err)
		}
		got <- m
	}))
	t.Cleanup(server.Close)
	var log bytes.Buffer
	for _, set := range []settings.Traces{{}, {URL: server.URL}, {URL: server.URL + "/v1/traces", Secret: "arn:aws:secretsmanager:us-west-2:111122223333:secret:c-d"}} {
		if tracer := tracesTo(&log, set); tracer != nil {
			t.Errorf("%+v is taken", set)
		}
		ctx, end := beginTrace(t.Context(), &App{tracer: tracesTo(&log, set)}, "provision")
		if end(context.Canceled); ctx != t.Context() || requests.Load() > 0 {
			t.Errorf("%+v: %d requests", set, requests.Load())
		}
	}
	if n := strings.Count(log.String(), "traces are not sent"); n != 4 { // two settings, each twice
		t.Errorf("told %d times:\n%s", n, log.String())
	}
	f, a := controllertest.WaitingPods(t), &App{tracer: tracesTo(&log, settings.Traces{URL: server.URL + "/v1/traces"})}
	ctx, end := beginTrace(t.Context(), a, "provision")
	end(f.Provision(f.World.Ports(fake.Fault{})).Run(ctx, f.Once()))
	if requests.Load() != 1 {
		t.Fatalf("%d requests; log:\n%s", requests.Load(), log.String())
	}
	m := (<-got).ResourceSpans[0]
	about := map[string]string{}
	for _, k := range m.Resource.Attributes {
		about[k.Key] = k.Value.GetStringValue()
	}
	if about["service.name"] != "joiner" || about["k8s.cluster.name"] != "shop" || about["service.version"] == "" {
		t.Errorf("resource %v", about)
	}
	if all := m.ScopeSpans[0].Spans; len(all) < 10 || all[len(all)-1].Name != "provision" {
		t.Errorf("%d spans, the last %v", len(all), all[len(all)-1])
	}
}
