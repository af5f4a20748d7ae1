package app

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers/remotewrite"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/timeseries"
	"joiner.sh/pkg/providers/prometheus"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// sendBudget is what infra/costs.md says that a send may take; slack is what a busy machine may take beside it.
const (
	sendBudget = 2 * time.Second
	slack      = time.Second
)

// writeRecorder keeps what the endpoint took, and the state of the recorder.
type writeRecorder struct {
	prometheus.Writer
	mu    sync.Mutex
	st    remotewrite.State
	sends int
	taken map[string]float64 // by name, summed
}

func (w *writeRecorder) WriteSeries(ctx context.Context, series, ended []timeseries.Series, at time.Time) error {
	err := w.Writer.WriteSeries(ctx, series, ended, at)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sends++
	if err != nil {
		return err
	}
	w.taken = map[string]float64{}
	for _, s := range series {
		w.taken[s.Name] += s.Value
	}
	return nil
}

func (w *writeRecorder) ReadState(context.Context) (remotewrite.State, bool, error) {
	return w.st, false, nil
}

func (w *writeRecorder) WriteState(_ context.Context, st remotewrite.State) error {
	w.st = st
	return nil
}

func (w *writeRecorder) ReadSurroundings(_ context.Context, s cluster.Snapshot) (cluster.Snapshot, timeseries.Totals, error) {
	return s, nil, nil
}

// badEndpoints are ways in which an endpoint does not take what it is sent.
func badEndpoints() map[string]func(t *testing.T) prometheus.Writer {
	answering := func(h http.HandlerFunc) func(t *testing.T) prometheus.Writer {
		return func(t *testing.T) prometheus.Writer {
			t.Helper()
			server := httptest.NewServer(h)
			t.Cleanup(server.Close)
			return prometheus.Writer{URL: server.URL}
		}
	}
	says := func(status int) func(t *testing.T) prometheus.Writer {
		return answering(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(status)
		})
	}
	return map[string]func(t *testing.T) prometheus.Writer{
		"it hangs": answering(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // so that it notices when the client goes
			<-r.Context().Done()
		}),
		"it answers byte by byte": answering(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}),
		"it takes no connection": func(t *testing.T) prometheus.Writer {
			t.Helper()
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			return prometheus.Writer{URL: "http://" + l.Addr().String()}
		},
		"no packet arrives": func(*testing.T) prometheus.Writer {
			return prometheus.Writer{URL: "http://metrics.example.com", Client: &http.Client{Transport: &http.Transport{
				DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}}}}
		},
		"it is down": func(*testing.T) prometheus.Writer {
			server := httptest.NewServer(http.NotFoundHandler())
			server.Close()
			return prometheus.Writer{URL: server.URL}
		},
		"it hangs up": answering(func(w http.ResponseWriter, _ *http.Request) {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = conn.Close()
			}
		}),
		"it refuses":       says(http.StatusUnauthorized),
		"it throttles":     says(http.StatusTooManyRequests),
		"it is overloaded": says(http.StatusServiceUnavailable),
	}
}

// registered counts the claims whose nodes are registered.
func registered(f *controllertest.Functions) (n int) {
	for _, c := range f.World.Claims() {
		for _, k := range c.Conditions {
			if k.Type == api.ConditionRegistered && k.Status == "True" {
				n++
			}
		}
	}
	return n
}

// joining is a world whose nodes have joined, and of which lifecycle knows nothing yet.
func joining(t *testing.T) *controllertest.Functions {
	t.Helper()
	f := controllertest.WaitingPods(t)
	if err := f.Provision(f.World.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
		t.Fatal(err)
	}
	f.World.Advance(time.Minute)
	return f
}

// TestABadEndpointDelaysNoLaunch: while remote write waits for an endpoint that takes nothing, nodes are registered. The
// invocation succeeds and ends within the budget of a send, it is told once in several minutes, and when the endpoint is
// well again it gets every counter as if it had always been.
func TestABadEndpointDelaysNoLaunch(t *testing.T) {
	for name, endpoint := range badEndpoints() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, to := joining(t), &writeRecorder{Writer: endpoint(t)}
			var log bytes.Buffer
			series := &remotewrite.Recorder{Store: to, Writer: to, Around: to, Now: f.World.Now, Log: slog.New(slog.NewTextHandler(&log, nil))}
			invoke := func() (took time.Duration) {
				l := f.Lifecycle(f.World.Ports(fake.Fault{}))
				l.Series = series
				began := time.Now()
				if err := l.Run(t.Context(), f.Once()); err != nil {
					t.Errorf("an invocation ends with %v", err)
				}
				return time.Since(began)
			}
			claims := len(f.World.Claims())
			done := make(chan time.Duration)
			go func() { done <- invoke() }()
			began := time.Now()
			for registered(f) < claims && time.Since(began) < sendBudget {
				time.Sleep(5 * time.Millisecond)
			}
			if took := time.Since(began); took > slack || claims == 0 {
				t.Errorf("%d of %d nodes are registered after %s", registered(f), claims, took)
			}
			if took := <-done; took > sendBudget+slack {
				t.Errorf("the invocation took %s", took)
			}
			f.World.Advance(time.Minute)
			f.World.DeleteClaims() // which is counted while nothing can be sent
			if took := invoke(); took > sendBudget+slack {
				t.Errorf("the next invocation took %s", took)
			}
			if n := strings.Count(log.String(), "metrics cannot be sent"); n != 1 || to.sends != 2 {
				t.Errorf("told %d times of %d sends:\n%s", n, to.sends, log.String())
			}

			well := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "1")
				w.WriteHeader(http.StatusNoContent)
			}))
			t.Cleanup(well.Close)
			to.Writer.URL, to.Writer.Client = well.URL, nil
			for range 30 {
				if f.World.Advance(time.Minute); len(f.World.Claims()) > 0 {
					invoke()
				}
			}
			invoke()
			if got := to.taken["karpenter_nodeclaims_terminated_total"]; got != float64(claims) {
				t.Errorf("%v NodeClaims are told to have ended, want %d", got, claims)
			}
			if !strings.Contains(log.String(), "metrics are sent again") {
				t.Errorf("not told that it is over:\n%s", log.String())
			}
		})
	}
}
