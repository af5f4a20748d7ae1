package remotewrite

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/timeseries"
)

const (
	sendEvery  = 55 * time.Second // a little less than the schedule
	mostSeries = 100_000
	mostOpen   = 10_000          // series that are stored to be ended by another process
	openFor    = 5 * time.Minute // without a value a series ends by itself
	mostTime   = 8 * time.Second // of one send with all that is read and stored for it
)

// State holds what one send tells the next.
type State struct {
	History timeseries.History  `json:"history"`
	Open    []timeseries.Series `json:"open,omitempty"` // series that the endpoint may show
	Tried   time.Time           `json:"tried,omitzero"` // the last send
	controllers.Outage
}

// Recorder counts and sends. A nil Recorder does nothing. It belongs to a process, and is used by one invocation at a
// time.
type Recorder struct {
	Store   StateStore
	Writer  SeriesWriter
	Around  Surroundings
	Options timeseries.Options // Others and Limit are filled in
	Now     func() time.Time
	Log     *slog.Logger

	invocation context.Context

	mu      sync.Mutex
	state   State
	loaded  bool                // in this invocation
	did     timeseries.Activity // since the last observation
	sending sync.WaitGroup
}

// Begin begins an invocation, as long as whose context a send may go on. What is known is read again before anything is
// counted. What the last one did after its last observation counts still.
func (r *Recorder) Begin(ctx context.Context) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loaded, r.invocation = false, ctx
}

// ObservePass counts what is new in the snapshot. The first of an invocation is sent, beside whatever comes next, if
// nothing was sent for a minute. It goes on when the pass is over.
func (r *Recorder) ObservePass(s cluster.Snapshot, first bool) {
	if r == nil {
		return
	}
	if first {
		r.sending.Go(func() { r.send(r.invocation, s) })
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loaded {
		r.observe(s)
	}
}

// Wait waits until what was begun is sent or given up.
func (r *Recorder) Wait() {
	if r != nil {
		r.sending.Wait()
	}
}

// NoteDeleted notes why a NodeClaim was deleted.
func (r *Recorder) NoteDeleted(claim, reason string) {
	r.note(func(did *timeseries.Activity) {
		if did.Deleted == nil {
			did.Deleted = map[string]string{}
		}
		did.Deleted[claim] = reason
	})
}

// NoteEviction notes what the API server answered to an eviction: the status code, 200 for a pod that leaves. The
// reason is why its node goes.
func (r *Recorder) NoteEviction(code int, reason string) {
	r.note(func(did *timeseries.Activity) {
		if did.Evictions == nil {
			did.Evictions, did.PodsDrained = map[string]int{}, map[string]int{}
		}
		did.Evictions[strconv.Itoa(code)]++
		if code/100 == 2 {
			did.PodsDrained[reason]++
		}
	})
}

func (r *Recorder) note(change func(*timeseries.Activity)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.did)
}

// observe counts. The caller holds the lock.
func (r *Recorder) observe(s cluster.Snapshot) {
	r.state.History = r.state.History.Observe(s, r.did)
	r.did = timeseries.Activity{}
}

// send counts the first snapshot of an invocation and sends all series. What fails is told of once in a while, and
// never an error of the invocation.
func (r *Recorder) send(ctx context.Context, s cluster.Snapshot) {
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	st, same, err := r.Store.ReadState(ctx)
	if err != nil {
		r.Log.Warn("metrics are neither counted nor sent this time", "error", err)
		return
	}
	full, others, err := r.Around.ReadSurroundings(ctx, s)
	if err != nil {
		r.Log.Warn("metrics are sent without prices and disruption", "error", err)
		full = s
	}
	series, ended, due, err := r.prepare(ctx, st, same, full, others)
	if err != nil {
		r.Log.Warn("metrics are not sent this time", "error", err)
	}
	if err != nil || !due {
		return
	}
	sent := r.Writer.WriteSeries(ctx, series, ended, s.Now)
	if r.noteOutcome(series, sent) {
		if err := r.Store.WriteState(ctx, r.stored()); err != nil {
			r.Log.Warn("it is told again when metrics cannot be sent", "error", err)
		}
	}
}

// prepare counts, and returns what is to be sent. What was counted is stored first: a send that is not known to have
// arrived is better than a counter that goes back.
func (r *Recorder) prepare(ctx context.Context, st State, same bool, s cluster.Snapshot,
	others timeseries.Totals) (series, ended []timeseries.Series, due bool, err error) {
	r.mu.Lock()
	if !same {
		r.state = st
	}
	r.loaded = true
	r.observe(s)
	now := r.Now()
	if since := now.Sub(r.state.Tried); since >= 0 && since < sendEvery { // whoever wrote a later time must not stop us
		r.mu.Unlock()
		return nil, nil, false, nil
	}
	o := r.Options
	o.Limit, o.Others = mostSeries, others
	series, _ = r.state.History.List(s, o)
	ended = endedSeries(r.state.Open, series)
	r.state.Tried, r.state.Open = now, slices.Concat(series, ended) // until it is known what arrived
	r.mu.Unlock()
	return series, ended, true, r.Store.WriteState(ctx, r.stored())
}

// stored is the state as another process is to find it.
func (r *Recorder) stored() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := r.state
	st.Open = st.Open[:min(len(st.Open), mostOpen)]
	return st
}

// noteOutcome notes what became of a send, and tells of it where that is news. It reports whether it told something.
func (r *Recorder) noteOutcome(series []timeseries.Series, err error) (told bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	told = r.state.NoteOutcome(r.Log, "metrics", err, now)
	switch {
	case err == nil:
		r.state.Open = series
	case now.Sub(r.state.Failing) > openFor:
		r.state.Open = nil
	}
	return told
}

// endedSeries returns the series that are open and no longer among the others.
func endedSeries(open, now []timeseries.Series) (out []timeseries.Series) {
	there := lists.Set(now, timeseries.Series.Key)
	for _, s := range open {
		if !there[s.Key()] {
			out = append(out, s)
		}
	}
	return out
}
