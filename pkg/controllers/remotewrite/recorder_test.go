package remotewrite_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/controllers/remotewrite"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/timeseries"
)

// memory is the store of all processes.
type memory struct {
	st      remotewrite.State
	version int
	err     error
}

// process is what one process has of the store.
type process struct {
	*memory
	read int
}

func (p *process) ReadState(context.Context) (remotewrite.State, bool, error) {
	same := p.read == p.version && p.version > 0
	p.read = p.version
	return p.st, same, p.err
}

func (p *process) WriteState(_ context.Context, st remotewrite.State) error {
	p.st, p.version = st, p.version+1
	p.read = p.version
	return p.err
}

// endpoint is Prometheus.
type endpoint struct {
	sends  int
	values map[string]float64
	ended  []string
	err    error
	wait   chan struct{}
}

func (e *endpoint) WriteSeries(_ context.Context, series, ended []timeseries.Series, _ time.Time) error {
	if e.wait != nil {
		<-e.wait
	}
	e.sends++
	if e.err != nil {
		return e.err
	}
	e.values, e.ended = map[string]float64{}, nil
	for _, s := range series {
		e.values[key(s)] = s.Value
	}
	for _, s := range ended {
		e.ended = append(e.ended, key(s))
	}
	return nil
}

func key(s timeseries.Series) string {
	out := strings.TrimPrefix(s.Name, "karpenter_")
	for _, l := range s.Labels {
		out += " " + l.Name + "=" + l.Value
	}
	return out
}

func (e *endpoint) ReadSurroundings(_ context.Context, s cluster.Snapshot) (cluster.Snapshot, timeseries.Totals, error) {
	others := timeseries.Totals{}
	others.Set("karpenter_voluntary_disruption_eligible_nodes", 2, "reason", "empty")
	return s, others, nil
}

// world is one cluster with one NodePool, whose NodeClaims are named.
type world struct {
	now   time.Time
	store *memory
	to    *endpoint
	log   bytes.Buffer
}

func newWorld() *world {
	return &world{now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), store: &memory{}, to: &endpoint{}}
}

func (w *world) process() *remotewrite.Recorder {
	return &remotewrite.Recorder{Store: &process{memory: w.store}, Writer: w.to, Around: w.to, Now: func() time.Time { return w.now },
		Log: slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelInfo}))}
}

func (w *world) snapshot(claims ...string) cluster.Snapshot {
	s := cluster.Snapshot{Now: w.now, Pools: []cluster.Pool{{Name: "general"}}}
	for _, c := range claims {
		s.Pools = append(s.Pools, cluster.Pool{Name: "pool-of-" + c})
		s.Claims = append(s.Claims, cluster.Claim{Name: c, UID: c, Pool: "general", Created: w.now})
	}
	return s
}

// invoke is one invocation with its passes, a second apart.
func (w *world) invoke(t *testing.T, r *remotewrite.Recorder, passes ...cluster.Snapshot) {
	t.Helper()
	r.Begin(t.Context())
	for i, s := range passes {
		s.Now = w.now
		r.ObservePass(s, i == 0)
		r.Wait()
		w.now = w.now.Add(time.Second)
	}
}

const created = "nodeclaims_created_total min_values_relaxed=false nodepool=general reason=provisioned"

// TestCountersOutliveProcesses: two processes take turns, and a third begins.
func TestCountersOutliveProcesses(t *testing.T) {
	w := newWorld()
	a, b := w.process(), w.process()
	w.invoke(t, a, w.snapshot("c1"), w.snapshot("c1", "c2")) // the first is there already
	w.now = w.now.Add(time.Minute)
	w.invoke(t, b, w.snapshot("c1", "c2", "c3"))
	if got := w.to.values[created]; got != 2 {
		t.Errorf("in another process %v, want 2", got)
	}
	w.now = w.now.Add(time.Minute)
	w.invoke(t, a, w.snapshot("c1", "c2", "c3", "c4"))
	if got := w.to.values[created]; got != 3 {
		t.Errorf("in the first process again %v, want 3", got)
	}
	w.now = w.now.Add(time.Minute)
	w.invoke(t, w.process(), w.snapshot("c1", "c2", "c3", "c4"))
	if got := w.to.values[created]; got != 3 {
		t.Errorf("in a third %v, want 3", got)
	}
	if w.to.values["voluntary_disruption_eligible_nodes reason=empty"] != 2 {
		t.Errorf("what disruption counted is not sent: %v", w.to.values)
	}
}

// TestOnceAMinute however often lifecycle is woken; what it sees in between is counted.
func TestOnceAMinute(t *testing.T) {
	w := newWorld()
	r := w.process()
	for i := range 30 {
		w.invoke(t, r, w.snapshot(fmt.Sprint("c", i)))
		w.now = w.now.Add(3 * time.Second)
	}
	if w.to.sends != 3 {
		t.Errorf("%d sends in two minutes", w.to.sends)
	}
	w.now = w.now.Add(time.Minute)
	w.invoke(t, r, w.snapshot())
	if got := w.to.values[created]; got != 29 {
		t.Errorf("%v created, want 29", got)
	}
}

// TestSeriesThatEnd are marked once, by whatever process, and again where the endpoint did not take it.
func TestSeriesThatEnd(t *testing.T) {
	w := newWorld()
	w.invoke(t, w.process(), w.snapshot("c1"))
	next := func(r *remotewrite.Recorder, err error, want ...string) {
		t.Helper()
		w.now = w.now.Add(time.Minute)
		w.to.err, w.to.ended = err, nil
		w.invoke(t, r, w.snapshot())
		var got []string
		for _, k := range w.to.ended {
			if strings.HasPrefix(k, "nodepools_cost_total") {
				got = append(got, k)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("ended %v, want %v", got, want)
		}
	}
	next(w.process(), errors.New("away"))
	r := w.process()
	next(r, nil, "nodepools_cost_total nodepool=pool-of-c1")
	next(r, nil)
}

func TestAnEndpointThatFailsIsToldOfOnceAnHour(t *testing.T) {
	w := newWorld()
	w.to.err = errors.New("it is throttled")
	for range 150 {
		w.invoke(t, w.process(), w.snapshot()) // no process lives for long
		w.now = w.now.Add(time.Minute)
	}
	if got := strings.Count(w.log.String(), "metrics cannot be sent"); got != 3 || !strings.Contains(w.log.String(), "it is throttled") {
		t.Errorf("told %d times in two and a half hours:\n%s", got, w.log.String())
	}
	w.log.Reset()
	w.to.err = nil
	for range 2 {
		w.invoke(t, w.process(), w.snapshot())
		w.now = w.now.Add(time.Minute)
	}
	if strings.Count(w.log.String(), "metrics are sent again") != 1 {
		t.Errorf("told when it is over:\n%s", w.log.String())
	}
}

// TestNobodyWaitsForTheEndpoint but the end of the invocation.
func TestNobodyWaitsForTheEndpoint(t *testing.T) {
	w := newWorld()
	w.to.wait = make(chan struct{})
	r := w.process()
	r.Begin(t.Context())
	r.ObservePass(w.snapshot(), true)
	r.ObservePass(w.snapshot("c1"), false)
	r.NoteDeleted("c1", "expired")
	if w.to.sends != 0 {
		t.Error("it is sent")
	}
	close(w.to.wait)
	r.Wait()
	if w.to.sends != 1 {
		t.Errorf("%d sends", w.to.sends)
	}
}

// TestWhatIsDoneIsCounted: deletions with their reason, and evictions.
func TestWhatIsDoneIsCounted(t *testing.T) {
	w := newWorld()
	r := w.process()
	w.invoke(t, r, w.snapshot("c1"))
	w.now = w.now.Add(time.Minute)
	r.NoteDeleted("c1", "expired") // of an invocation that ended before it was counted
	r.Begin(t.Context())
	r.ObservePass(w.snapshot("c1"), true)
	r.Wait()
	r.NoteDeleted("c1", "registration_timeout")
	r.NoteEviction(200, "Drifted")
	r.NoteEviction(429, "Drifted")
	gone := w.snapshot("c1")
	gone.Claims[0].Deleting = w.now
	r.ObservePass(gone, false)
	w.now = w.now.Add(time.Minute)
	w.invoke(t, r, w.snapshot())
	for series, want := range map[string]float64{"nodeclaims_disrupted_total nodepool=general reason=registration_timeout termination_mode=graceful": 1,
		"pods_eviction_requests_total code=200": 1, "pods_eviction_requests_total code=429": 1, "pods_drained_total reason=Drifted": 1} {
		if w.to.values[series] != want {
			t.Errorf("%s is %v, want %v", series, w.to.values[series], want)
		}
	}
}

// TestWithoutTheStoreNothingIsSent, since counters would begin anew.
func TestWithoutTheStoreNothingIsSent(t *testing.T) {
	w := newWorld()
	w.store.err = errors.New("away")
	w.invoke(t, w.process(), w.snapshot())
	if w.to.sends != 0 || !strings.Contains(w.log.String(), "away") {
		t.Errorf("%d sends, told:\n%s", w.to.sends, w.log.String())
	}
}

func TestNoRecorder(t *testing.T) {
	var r *remotewrite.Recorder
	r.Begin(t.Context())
	r.ObservePass(cluster.Snapshot{}, true)
	r.NoteDeleted("c1", "expired")
	r.NoteEviction(200, "")
	r.Wait()
}

// What somebody else wrote into the bucket stops neither the function nor the metrics.
func TestAForgedState(t *testing.T) {
	for _, text := range []string{`{"history":{"at":"2026-01-01T11:59:00Z","totals":{"x":null}},"open":null}`,
		`{"tried":"2999-01-01T00:00:00Z","history":{"at":"2999-01-01T00:00:00Z"}}`,
		`{"history":{"totals":{"x":{"f":"karpenter_nodeclaims_created_total","v":1e308,"b":[1]},"y":{"f":"karpenter_pods_startup_duration_seconds","b":[1,2]}}}}`,
	} {
		w := newWorld()
		if err := json.Unmarshal([]byte(text), &w.store.st); err != nil {
			t.Fatal(err)
		}
		w.invoke(t, w.process(), w.snapshot("c1"))
		if w.to.sends != 1 {
			t.Errorf("%s: %d sends, want one", text, w.to.sends)
		}
	}
}
