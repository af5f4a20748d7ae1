package control

import (
	"errors"
	"slices"
	"time"
)

// Pauses after a step that failed, before the same object is tried again (spec core.md §4.1).
const (
	firstSetback   = time.Second
	longestSetback = time.Minute
)

// setbacks are the objects of one invocation whose step failed. They are left alone for a while, each time longer, and the others
// go on: one that fails all the time must not hold up a drain.
type setbacks map[string]setback

type setback struct {
	pause time.Duration
	until time.Time
	err   error
}

// rests reports whether an object is to be left alone.
func (s setbacks) rests(subject string, now time.Time) bool { return now.Before(s[subject].until) }

func (s setbacks) add(subject string, err error, now time.Time) {
	pause := min(max(2*s[subject].pause, firstSetback), longestSetback)
	s[subject] = setback{pause, now.Add(pause), err}
}

// err joins the last error of each object that did not succeed since.
func (s setbacks) err() error {
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
