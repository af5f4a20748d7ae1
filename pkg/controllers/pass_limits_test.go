package controllers

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"joiner.sh/pkg/model/metrics"
)

// counted keeps what was measured.
type counted struct{ records []metrics.Record }

func (c *counted) Put(r ...metrics.Record) { c.records = append(c.records, r...) }

// limited is a function whose passes have limits, with what it logs and measures.
func limited() (*Deps, *bytes.Buffer, *counted) {
	text, seen := &bytes.Buffer{}, &counted{}
	return &Deps{Log: slog.New(slog.NewTextHandler(text, nil)), Metrics: seen, Now: time.Now}, text, seen
}

// untilEnded is a pass that reads and decides, and then writes for longer than there is.
func untilEnded(ctx context.Context) (bool, error) {
	NoteStage(ctx, StageApplying)
	<-ctx.Done()
	return true, ctx.Err()
}

func TestAPassWithoutTimeIsCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, text, seen := limited()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		busy, err := d.LimitPass(untilEnded)(ctx)
		if took := time.Since(began); took != time.Minute-endingTakes {
			t.Errorf("it was cut after %s, want just as much left as ending takes", took)
		}
		wantCut(t, err, busy, CutShortError{CutForTime, StageApplying})
		if !strings.Contains(text.String(), `forWantOf=time while="applying the plan"`) {
			t.Errorf("log: %s", text)
		}
		if len(seen.records) != 1 || seen.records[0].Values[0].Name != metrics.PassesCutShort {
			t.Errorf("measured %+v", seen.records)
		}
	})
}

func wantCut(t *testing.T, err error, busy bool, want CutShortError) {
	t.Helper()
	got, ok := errors.AsType[*CutShortError](err)
	if !ok || *got != want || busy || !IsCutShort(err) {
		t.Errorf("busy %t, error %v; want %v", busy, err, want)
	}
}

func TestAPassWithoutMemoryIsCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, _ := limited()
		var used atomic.Int64
		d.Memory = func() (int64, int64) { return used.Load(), 512 << 20 }
		used.Store(450 << 20)
		time.AfterFunc(3*time.Second, func() { used.Store(480 << 20) })
		began := time.Now()
		busy, err := d.LimitPass(untilEnded)(t.Context())
		if took := time.Since(began); took < 3*time.Second || took > 3*time.Second+2*memoryLookEvery {
			t.Errorf("it was cut after %s", took)
		}
		wantCut(t, err, busy, CutShortError{CutForMemory, StageApplying})
	})
}

// What ends in order is not disturbed, and nothing is told of it.
func TestAPassThatEndsInTimeIsNotCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, seen := limited()
		failed := errors.New("the API server is away")
		for _, want := range []error{nil, failed} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			busy, err := d.LimitPass(func(context.Context) (bool, error) {
				time.Sleep(50 * time.Second)
				return true, want
			})(ctx)
			cancel()
			if !busy || !errors.Is(err, want) || IsCutShort(err) || len(seen.records) > 0 {
				t.Errorf("busy %t, error %v, measured %v; want %v", busy, err, seen.records, want)
			}
		}
	})
}

// It computes, hears of nothing and is cut off by Lambda: that it was cut short is told before, and its lease is back.
func TestAPassThatHearsNothingGivesItsLeaseBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, seen := limited()
		l := &leases{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		pass := func(ctx context.Context) (bool, error) {
			time.Sleep(59 * time.Second)
			if !l.free() || len(seen.records) != 1 {
				t.Errorf("a second before the end the lease is free: %t, measured %v", l.free(), seen.records)
			}
			return true, ctx.Err()
		}
		_, err := d.LimitPass(func(ctx context.Context) (bool, error) {
			busy, _, err := CapacityLease{Lease: l, Holder: "me"}.RunUnderLease(ctx, pass)
			return busy, err
		})(ctx)
		wantCut(t, err, false, CutShortError{CutForTime, StageReading})
		if l.returned != 1 {
			t.Errorf("the lease was given back %d times", l.returned)
		}
	})
}

func TestMemoryIsShort(t *testing.T) {
	for _, c := range []struct {
		used, limit int64
		want        bool
	}{{470 << 20, 512 << 20, false}, {472 << 20, 512 << 20, true}, {1 << 40, 0, false}} {
		if got := IsMemoryShort(c.used, c.limit); got != c.want {
			t.Errorf("%d of %d MiB: %t", c.used>>20, c.limit>>20, got)
		}
	}
}

// leases is a lease in memory.
type leases struct {
	held     atomic.Bool
	returned int
}

func (l *leases) Acquire(context.Context, string, string, time.Duration) (func(context.Context) error, bool, error) {
	l.held.Store(true)
	return func(context.Context) error { l.held.Store(false); l.returned++; return nil }, true, nil
}

func (l *leases) free() bool { return !l.held.Load() }
