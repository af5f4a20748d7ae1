package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"joiner.sh/pkg/providers/store"
)

// TestQuota: as many things as may be, each counted once, until they are forgotten.
func TestQuota(t *testing.T) {
	s := &notes{}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	take := func(thing string) bool {
		t.Helper()
		ok, err := store.NewQuota(s, "things", 2, time.Hour, func() time.Time { return now }).TakeOne(context.Background(), thing)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	for i, step := range []struct {
		thing string
		want  bool
		after time.Duration
	}{
		{"a", true, 0}, {"a", true, time.Minute}, {"b", true, 0}, {"c", false, 0}, {"a", true, 0},
		{"c", false, 58 * time.Minute}, {"c", true, time.Minute}, {"d", false, 0}, {"d", true, time.Minute},
	} {
		now = now.Add(step.after)
		if got := take(step.thing); got != step.want {
			t.Errorf("step %d: %s: %t, want %t", i, step.thing, got, step.want)
		}
	}
	s.data = map[string]string{"taken": "nonsense"}
	if !take("e") {
		t.Error("broken data stops everything")
	}
}

// TestQuotaAgainstOthers: somebody else takes the last one meanwhile.
func TestQuotaAgainstOthers(t *testing.T) {
	s := &notes{}
	q := store.NewQuota(s, "things", 1, time.Hour, time.Now)
	s.meanwhile = func() {
		s.meanwhile = nil
		if ok, err := q.TakeOne(context.Background(), "theirs"); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if ok, err := q.TakeOne(context.Background(), "ours"); ok || err != nil {
		t.Errorf("%t, %v, want a refusal", ok, err)
	}
	s.broken = errors.New("no connection")
	if ok, err := q.TakeOne(context.Background(), "theirs"); ok || !errors.Is(err, s.broken) {
		t.Errorf("%t, %v, want the error", ok, err)
	}
}

// notes is one piece of data with optimistic concurrency.
type notes struct {
	data      map[string]string
	version   string
	meanwhile func() // between a read and its write
	broken    error
}

func (n *notes) ReadData(context.Context, string) (map[string]string, string, error) {
	data, version := n.data, n.version
	if n.meanwhile != nil {
		n.meanwhile()
	}
	return data, version, n.broken
}

func (n *notes) WriteData(_ context.Context, _ string, data map[string]string, version string) error {
	if version != n.version {
		return &stale{}
	}
	n.data, n.version = data, version+"i"
	return nil
}

type stale struct{}

func (*stale) Error() string  { return "stale" }
func (*stale) Conflict() bool { return true }
