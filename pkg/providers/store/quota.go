package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// RateQuota bounds how many things are done in a time, over all functions and their lives. Its methods may be called
// concurrently.
type RateQuota struct {
	store Store
	name  string // of the data in the store
	most  int
	per   time.Duration
	now   func() time.Time
}

// NewQuota lets so many things be done in any span of that length. The name tells one quota from another.
func NewQuota(store Store, name string, most int, per time.Duration, now func() time.Time) *RateQuota {
	return &RateQuota{store: store, name: "joiner-" + name, most: most, per: per, now: now}
}

// takenEntry is one thing that was done.
type takenEntry struct {
	Thing string    `json:"thing"`
	At    time.Time `json:"at"`
}

// TakeOne reports whether the thing may be done, and remembers that it was. A thing that was let through is let through
// again while it counts, and counts once.
func (q *RateQuota) TakeOne(ctx context.Context, thing string) (bool, error) {
	var ok bool
	err := retryConflicts(ctx, func() (err error) { ok, err = q.takeFrom(ctx, thing); return err })
	if err != nil {
		return false, fmt.Errorf("take of quota %s: %w", q.name, err)
	}
	return ok, nil
}

func (q *RateQuota) takeFrom(ctx context.Context, thing string) (bool, error) {
	data, version, err := q.store.ReadData(ctx, q.name)
	if err != nil {
		return false, err
	}
	var all []takenEntry
	if json.Unmarshal([]byte(cmp.Or(data["taken"], "[]")), &all) != nil {
		all = nil // whoever broke it must not stop us; the next write mends it
	}
	now := q.now()
	all = slices.DeleteFunc(all, func(t takenEntry) bool { return !now.Before(t.At.Add(q.per)) })
	if slices.ContainsFunc(all, func(t takenEntry) bool { return t.Thing == thing }) {
		return true, nil
	}
	if len(all) >= q.most {
		return false, nil
	}
	body, err := json.Marshal(append(all, takenEntry{Thing: thing, At: now.UTC()}))
	if err != nil {
		return false, fmt.Errorf("encode: %w", err)
	}
	return true, q.store.WriteData(ctx, q.name, map[string]string{"taken": string(body)}, version)
}
