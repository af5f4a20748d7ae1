package controllers

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
)

// TooLateToBegin reports whether what begins now might be cut off in the middle.
func TooLateToBegin(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < stepTakes
}

// ForEach does something with each of the items, so many at a time, and returns when all of it is done.
func ForEach[T any](most int, items []T, do func(i int, item T)) {
	var g errgroup.Group
	g.SetLimit(most)
	for i, item := range items {
		g.Go(func() error { do(i, item); return nil })
	}
	_ = g.Wait() // nothing returns an error
}

// WaitFor waits, or returns the error of the context.
func WaitFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// WaitForChange returns on a change in the cluster, at the latest after the time given or when the time left is over,
// and lets a burst arrive first.
func WaitForChange(ctx context.Context, r Reader, left, most time.Duration) error {
	limit, cancel := context.WithTimeout(ctx, min(left, most))
	defer cancel()
	err := r.Wait(limit)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if err == nil {
		_ = WaitFor(limit, mayTakeMore) // less where the time is over
	}
	return ctx.Err()
}

const mayTakeMore = 200 * time.Millisecond // pods of one burst arrive within this

// a launch or another step, as a rule: none is begun later in an invocation
const stepTakes = 4 * time.Second
