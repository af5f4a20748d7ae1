package controllers

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// What fails every time is tried again after 1, 2, 4 and so on up to 60 seconds, and the others do not wait for it.
func TestPausesAfterFailures(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s := StepBackoff{}
	var pauses []time.Duration
	for range 9 {
		s.AddFailure("claim a", errors.New("no"), now)
		began := now
		for s.IsBackingOff("claim a", now) {
			now = now.Add(time.Second)
		}
		pauses = append(pauses, now.Sub(began)/time.Second)
	}
	if want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60}; !slices.Equal(pauses, want) {
		t.Errorf("pauses of %d s, want %d", pauses, want)
	}
	if s.AddFailure("claim a", errors.New("no"), now); s.IsBackingOff("claim b", now) || s.JoinErrors() == nil {
		t.Errorf("one that did not fail rests, or the failure is forgotten: %v", s.JoinErrors())
	}
}
