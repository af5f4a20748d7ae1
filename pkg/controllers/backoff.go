package controllers

import (
	"errors"
	"slices"
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

// JoinErrors joins the last error of each object that did not succeed since.
func (s StepBackoff) JoinErrors() error {
	var subjects []string
	for k := range s {
		subjects = append(subjects, k)
	}
	slices.Sort(subjects)
	var errs []error
	for _, k := range subjects {
		errs = append(errs, s[k].err)
	}
	return errors.Join(errs...)
}
