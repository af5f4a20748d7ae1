package controllers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Pauses after a step that failed, before the same object is tried again.
const (
	firstSetback   = time.Second
	longestSetback = time.Minute
)

// StepBackoff are the objects of one invocation whose step failed. They are left alone for a while, each time longer,
// and the others go on: one that fails all the time must not hold up a drain.
type StepBackoff map[string]failedStep

type failedStep struct {
	pause time.Duration
	until time.Time
	err   error
}

// IsBackingOff reports whether an object is to be left alone.
func (s StepBackoff) IsBackingOff(subject string, now time.Time) bool {
	return now.Before(s[subject].until)
}

// AddFailure notes that a step about the object failed. Each failure in a row doubles the pause, up to a minute.
func (s StepBackoff) AddFailure(subject string, err error, now time.Time) {
	pause := min(max(2*s[subject].pause, firstSetback), longestSetback)
	s[subject] = failedStep{pause, now.Add(pause), err}
}

// JoinErrors joins the last error of each object that did not succeed since. One that several share is told once.
func (s StepBackoff) JoinErrors() error {
	var errs []error
	told := map[string]bool{}
	for _, k := range slices.Sorted(maps.Keys(s)) {
		if text := s[k].err.Error(); !told[text] {
			told[text] = true
			errs = append(errs, s[k].err)
		}
	}
	return errors.Join(errs...)
}

// ObjectBackoff is a StepBackoff that several goroutines use. The zero value is ready.
type ObjectBackoff struct {
	mu   sync.Mutex
	rest StepBackoff
}

// IsBackingOff reports whether an object is to be left alone.
func (b *ObjectBackoff) IsBackingOff(subject string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rest.IsBackingOff(subject, now)
}

// NoteOutcome notes what became of a step about the object. One that was cut short with its pass has not failed.
func (b *ObjectBackoff) NoteOutcome(ctx context.Context, subject string, err error, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		delete(b.rest, subject)
	case ctx.Err() == nil:
		if b.rest == nil {
			b.rest = StepBackoff{}
		}
		b.rest.AddFailure(subject, err, now)
	}
}

// KeepOnly forgets all other objects: they are gone.
func (b *ObjectBackoff) KeepOnly(subjects []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.rest, func(subject string, _ failedStep) bool { return !slices.Contains(subjects, subject) })
}

// JoinErrors joins the errors of the StepBackoff.
func (b *ObjectBackoff) JoinErrors() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rest.JoinErrors()
}

// TryAction is TryStep for an action that writes: a pass that may not write logs it instead, which counts as done.
func (d *Deps) TryAction(ctx context.Context, b *ObjectBackoff, subject, action string, do func() error) bool {
	return d.TryStep(ctx, b, subject, func() error {
		if may, err := MayBegin(ctx, d.Log, action); err != nil || !may {
			return err
		}
		return do()
	})
}

// TryStep does something about an object, unless that failed a moment ago, and reports whether it was done. What fails
// stops nothing else: it is among the errors of b. What changed meanwhile is left to the next pass.
func (d *Deps) TryStep(ctx context.Context, b *ObjectBackoff, subject string, do func() error) bool {
	if b.IsBackingOff(subject, d.Now()) {
		return false
	}
	err := d.Shield().Do(subject, do)
	b.NoteOutcome(ctx, subject, IgnoreConflict(d.Log, err), d.Now())
	return err == nil
}
