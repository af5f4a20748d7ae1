package controllers

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// signs is a lease of which it is told what happens to it.
type signs struct {
	said   []string
	err    error
	others bool // somebody else holds it
}

func (s *signs) LeaseSign(context.Context, string) (string, error) {
	if s.others {
		return "somebody", nil
	}
	return "", nil
}

func (s *signs) Acquire(_ context.Context, name, holder string, _ time.Duration) (func(context.Context) error, bool, error) {
	s.said = append(s.said, "take "+name+" for "+holder)
	return func(context.Context) error { s.said = append(s.said, "give back"); return nil }, s.err == nil, s.err
}

// TestWatchLease: whoever watches says so once, and looks once more after it no longer says so. At the end of its time it
// says so no longer, but goes on looking.
func TestWatchLease(t *testing.T) {
	s := &signs{}
	w := Watcher{Lease: s, Name: WatchLeaseName("lifecycle"), Holder: "me", Log: slog.New(slog.DiscardHandler)}
	for i, c := range []struct {
		busy  bool
		left  time.Duration
		stays bool
		said  []string
	}{
		{false, time.Minute, false, nil},
		{true, time.Minute, true, []string{"take joiner-watch-lifecycle for me"}},
		{true, 50 * time.Second, true, nil},
		{false, 40 * time.Second, true, []string{"give back"}},
		{false, 39 * time.Second, false, nil},
		{true, 30 * time.Second, true, []string{"take joiner-watch-lifecycle for me"}},
		{true, 2 * time.Second, true, []string{"give back"}},
		{true, time.Second, true, nil},
		{true, 0, false, nil},
	} {
		s.said = nil
		if got := w.ContinueWatch(t.Context(), c.busy, c.left, 0); got != c.stays || !slices.Equal(s.said, c.said) {
			t.Errorf("step %d: stays %t and does %q, want %t and %q", i, got, s.said, c.stays, c.said)
		}
	}
	// A pass with something to do tells so before it does it. When that takes all the time there was, somebody may have
	// relied on it.
	s.said = nil
	w.BeginWatch(t.Context(), 3*time.Second)
	if len(s.said) > 0 {
		t.Errorf("shortly before its end it begins to watch: %q", s.said)
	}
	w.BeginWatch(t.Context(), 4*time.Second)
	if got := w.ContinueWatch(t.Context(), true, -time.Second, 0); !got || len(s.said) != 2 {
		t.Errorf("after a pass that took all its time it looks again: %t, and does %q", got, s.said)
	}
	if w.ContinueWatch(t.Context(), true, -2*time.Second, 0) {
		t.Error("it looks for ever")
	}
	// One that died is waited for, and then looked for once more.
	for i, c := range []struct{ others, stays bool }{{true, true}, {true, true}, {false, true}, {false, false}} {
		s.others = c.others
		if got := w.ContinueWatch(t.Context(), false, time.Minute, 0); got != c.stays {
			t.Errorf("look %d while another seems to watch (%t): stays %t", i, c.others, got)
		}
	}
	s.err = errors.New("the API server is away")
	if !w.ContinueWatch(t.Context(), true, time.Minute, 0) || w.ContinueWatch(t.Context(), false, time.Minute, 0) {
		t.Error("without a lease it must watch all the same, and need not look again when others wake it")
	}
}

// TestNobodyTellsOfAWatchWithoutPermission: an invocation that only observes may stay, and takes no lease.
func TestNobodyTellsOfAWatchWithoutPermission(t *testing.T) {
	s := &signs{}
	w := Watcher{Lease: s, Name: WatchLeaseName("provision"), Holder: "me", Log: slog.New(slog.DiscardHandler),
		Permission: func(context.Context) (bool, error) { return false, nil }}
	w.BeginWatch(t.Context(), time.Minute)
	if !w.ContinueWatch(t.Context(), true, time.Minute, 0) || len(s.said) > 0 {
		t.Errorf("without permission to write it does %q", s.said)
	}
}

// bell counts, and answers who watches.
type bell struct {
	watched bool
	err     error
	rung    int
	asked   string
}

func (b *bell) Wake(context.Context) error { b.rung++; return nil }

func (b *bell) LeaseSign(_ context.Context, name string) (string, error) {
	b.asked = name
	if !b.watched {
		return "", b.err
	}
	return "somebody", b.err
}

func TestNobodyIsWokenWhoWatches(t *testing.T) {
	for _, c := range []struct {
		name    string
		watched bool
		err     error
		rung    int
	}{{"asleep", false, nil, 1}, {"watching", true, nil, 0}, {"unknown", false, errors.New("away"), 1}} {
		b := &bell{watched: c.watched, err: c.err}
		err := WakeUnlessWatching{Waker: b, Of: b, Function: "provision", Log: slog.New(slog.DiscardHandler)}.Wake(t.Context())
		if err != nil || b.rung != c.rung || b.asked != "joiner-watch-provision" {
			t.Errorf("%s: woken %d times after asking about %q, error %v; want %d", c.name, b.rung, b.asked, err, c.rung)
		}
	}
}

// beat answers who watches with one sign after the other, the last one for ever.
type beat struct {
	signs []string
	rung  int
}

func (b *beat) Wake(context.Context) error { b.rung++; return nil }

func (b *beat) LeaseSign(context.Context, string) (string, error) {
	now := b.signs[0]
	if len(b.signs) > 1 {
		b.signs = b.signs[1:]
	}
	if now == "unknown" {
		return "", errors.New("away")
	}
	return now, nil
}

// TestOneThatDiedIsFoundOut: what is urgent is left to an invocation that watches only if that one shows that it lives.
func TestOneThatDiedIsFoundOut(t *testing.T) {
	for _, c := range []struct {
		name  string
		signs []string
		rung  int
		took  time.Duration
	}{
		{"nobody watches", []string{""}, 1, 0},
		{"it lives", []string{"a1", "a2"}, 0, 2250 * time.Millisecond},
		{"it lives and is slow", []string{"a1", "a1", "a2"}, 0, 4500 * time.Millisecond},
		{"its lease runs out", []string{"a1", "a1", "a1", ""}, 1, 6750 * time.Millisecond},
		{"it gave the lease back", []string{"a1", ""}, 1, 2250 * time.Millisecond},
		{"its lease lasts by a clock that is off", []string{"a1"}, 1, 6750 * time.Millisecond},
		{"it cannot be found out", []string{"a1", "unknown"}, 1, 2250 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, began := &beat{signs: c.signs}, time.Now()
			w := WakeUnlessWatching{Waker: b, Of: b, Function: "provision", Log: slog.New(slog.DiscardHandler)}
			confirm, err := w.WakeAndConfirm(t.Context())
			if err == nil && confirm != nil {
				err = confirm(t.Context())
			}
			if err != nil || b.rung != c.rung || time.Since(began) != c.took {
				t.Errorf("%s: woken %d times after %s, error %v; want %d after %s", c.name, b.rung, time.Since(began), err, c.rung, c.took)
			}
		})
	}
}
