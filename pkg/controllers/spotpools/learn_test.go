package spotpools

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"testing"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	model "joiner.sh/pkg/model/spotpools"
)

var (
	now  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pool = model.Pool{Type: "c6a.large", Zone: "us-west-2b"}
)

// world plays all ports.
type world struct {
	claims   []cluster.Claim
	events   []model.Event
	own      model.Record
	others   []model.Record
	writeErr error
	forgetNo bool
	writes   int
}

func (w *world) ListClaims(context.Context) ([]cluster.Claim, error)   { return w.claims, nil }
func (w *world) ListSpotEvents(context.Context) ([]model.Event, error) { return w.events, nil }
func (w *world) ReadOwn(context.Context) (model.Record, string, error) { return w.own, "1", nil }
func (w *world) ReadOthers(context.Context) ([]model.Record, error) {
	return w.others, errors.New("one is damaged")
}
func (w *world) ForgetSpotEvents(context.Context, []model.Event) error {
	if w.forgetNo {
		return errors.New("cut off")
	}
	w.events = nil
	return nil
}

func (w *world) WriteOwn(_ context.Context, r model.Record, _ string) error {
	w.writes++
	if w.writeErr == nil {
		w.own = r
	}
	return w.writeErr
}

func spotClaim(launched time.Time) cluster.Claim {
	return cluster.Claim{Name: "one", Labels: map[string]string{"node.kubernetes.io/instance-type": pool.Type,
		"topology.kubernetes.io/zone": pool.Zone, "karpenter.sh/capacity-type": "spot"},
		Conditions: []cluster.Condition{{Type: v1.ConditionLaunched, Status: "True", Since: launched}}}
}

func learnerOf(w *world, at time.Time) *Learner {
	return &Learner{Claims: w, Events: w, Records: w, Now: func() time.Time { return at }, Log: slog.New(slog.DiscardHandler)}
}

func learn(t *testing.T, w *world, at time.Time, write bool) (*Learner, error) {
	t.Helper()
	l := learnerOf(w, at)
	return l, l.Learn(controllers.BeginPass(t.Context(), func(context.Context) (bool, error) { return write, nil }))
}

func TestLearnCountsEventsAndHoursOnce(t *testing.T) {
	w := &world{own: model.Record{Version: model.Version, At: now.Add(-30 * time.Minute)}, forgetNo: true,
		claims: []cluster.Claim{spotClaim(now.Add(-time.Hour)), spotClaim(now.Add(-15 * time.Minute)), {Name: "not launched"}},
		events: []model.Event{{ID: "i-1", Kind: model.Interruption, Pool: pool, At: now}}}
	if _, err := learn(t, w, now, true); err == nil {
		t.Error("events that could not be forgotten are no error")
	}
	if _, err := learn(t, w, now, true); err == nil { // dies after the write, and is repeated
		t.Error("events that could not be forgotten are no error")
	}
	if len(w.own.Pools) != 1 || math.Abs(w.own.Pools[0].Hours-0.75) > 1e-9 || w.own.Pools[0].Interruptions != 1 {
		t.Errorf("the record is %+v, want 0.75 node hours and one interruption", w.own.Pools)
	}
	w.forgetNo = false
	l, err := learn(t, w, now.Add(time.Minute), true)
	if err != nil || len(w.events) != 0 || len(l.Latest().Own) != 1 {
		t.Errorf("error %v, %d events left, summary %+v", err, len(w.events), l.Latest())
	}
}

func TestLearnDoesNotCountWhatItDidNotSee(t *testing.T) {
	w := &world{claims: []cluster.Claim{spotClaim(now.Add(-90 * 24 * time.Hour))}}
	if _, err := learn(t, w, now, true); err != nil || len(w.own.Pools) != 0 || !w.own.At.Equal(now) {
		t.Errorf("the first record is %+v (%v), want none of the hours before it", w.own, err)
	}
	if _, err := learn(t, w, now.Add(48*time.Hour), true); err != nil || math.Abs(w.own.Pools[0].Hours-1) > 1e-9 {
		t.Errorf("after two days without refresh: %+v (%v), want an hour", w.own.Pools, err)
	}
}

func TestWhoMayNotWriteOnlyReads(t *testing.T) {
	w := &world{own: model.Record{Version: model.Version, At: now}, events: []model.Event{{ID: "i-1", Kind: model.Refusal, Pool: pool}}}
	l, err := learn(t, w, now, false)
	if err != nil || w.writes != 0 || len(w.events) != 1 || l.Latest() == nil {
		t.Errorf("error %v, %d writes, %d events, summary %v", err, w.writes, len(w.events), l.Latest())
	}
}

type conflictError struct{ error }

func (conflictError) Conflict() bool { return true }

func TestAnotherWriterKeepsItsRecord(t *testing.T) {
	w := &world{own: model.Record{Version: model.Version, At: now}, events: []model.Event{{ID: "i-1", Kind: model.Refusal, Pool: pool}},
		writeErr: conflictError{errors.New("precondition failed")}}
	if l, err := learn(t, w, now, true); err != nil || len(w.events) != 1 || l.Latest() == nil {
		t.Errorf("error %v, %d events left for the next refresh, summary %v", err, len(w.events), l.Latest())
	}
	w.writeErr = errors.New("access denied")
	if _, err := learn(t, w, now, true); err == nil {
		t.Error("a record that cannot be stored is no error")
	}
}
