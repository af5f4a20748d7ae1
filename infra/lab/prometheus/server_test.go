package prometheus_test

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	metrics "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	receiver "github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"
)

// server is Prometheus on loopback: its receiver of remote write, its storage and its query engine.
type server struct {
	*httptest.Server
	db       *tsdb.DB
	engine   *promql.Engine
	requests atomic.Int64
}

// newServer receives these versions of the protocol.
func newServer(t *testing.T, versions ...remote.WriteMessageType) *server {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	db, err := tsdb.Open(t.TempDir(), log, nil, tsdb.DefaultOptions(), tsdb.NewDBStats())
	if err != nil {
		t.Fatal(err)
	}
	s := &server{db: db, engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})}
	receive := receiver.NewWriteHandler(log, metrics.NewRegistry(), db, versions, false, false, true)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		receive.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// query is what the expression is at the time.
func (s *server) query(t *testing.T, expression string, at time.Time) promql.Vector {
	t.Helper()
	q, err := s.engine.NewInstantQuery(context.Background(), s.db, nil, expression, at)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	defer q.Close()
	got := q.Exec(t.Context())
	if got.Err != nil {
		t.Fatalf("%s: %v", expression, got.Err)
	}
	v, err := got.Vector()
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// answers reports whether the expression has a number at one of the times.
func (s *server) answers(t *testing.T, expression string, times ...time.Time) bool {
	t.Helper()
	if _, err := parser.ParseExpr(expression); err != nil {
		t.Errorf("%s: %v", expression, err)
		return false
	}
	for _, at := range times {
		for _, sample := range s.query(t, expression, at) {
			if !math.IsNaN(sample.F) {
				return true
			}
		}
	}
	return false
}
