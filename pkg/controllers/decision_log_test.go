package controllers

import (
	"context"
	"errors"
	"testing"

	"joiner/pkg/decisionlog"
	"joiner/pkg/model/plan"
)

type diaryFunc func(decisionlog.Tick) error

func (f diaryFunc) WriteTick(_ context.Context, t decisionlog.Tick) error { return f(t) }

// A decision is noted once while it stays the same, none is not noted, and an error is no reason to stop.
func TestDecisionsAreNotedOnce(t *testing.T) {
	var noted, warned int
	d := decisionLog{to: diaryFunc(func(decisionlog.Tick) error { noted++; return errors.New("full") }), warn: func(string, ...any) { warned++ }}
	decision := func(launches int) func(decisionlog.PassStamp) (decisionlog.Tick, error) {
		return func(decisionlog.PassStamp) (decisionlog.Tick, error) {
			return decisionlog.Tick{Record: decisionlog.Record{Launches: make([]decisionlog.Launch, launches)}}, nil
		}
	}
	for _, c := range []struct {
		said     string
		launches int
		noted    int
	}{{"launch", 1, 1}, {"launch", 1, 1}, {"nothing", 0, 1}, {"launch", 1, 2}} {
		if d.recordTick(t.Context(), c.said, nil, decision(c.launches)); noted != c.noted {
			t.Errorf("%s: noted %d times, want %d", c.said, noted, c.noted)
		}
	}
	if warned != 2 {
		t.Errorf("%d warnings", warned)
	}
	if d.recordTick(t.Context(), "launch", []plan.Fault{{Why: "a panic"}}, decision(0)); noted != 3 {
		t.Errorf("a pass in which something failed is noted %d times", noted-2)
	}
	(&decisionLog{}).recordTick(t.Context(), "launch", nil, decision(1)) // without a diary nothing happens
}

// A pass that could write nothing, because another controller leads, is not told as one that acted.
func TestAPassThatMayNotWriteIsKeptAsObserved(t *testing.T) {
	for may, want := range map[bool]string{true: "act", false: "observe"} {
		var mode string
		d := decisionLog{to: diaryFunc(func(decisionlog.Tick) error { return nil }), stamp: decisionlog.PassStamp{Mode: "act"}, warn: t.Logf}
		ctx := beginPass(t.Context(), func(context.Context) (bool, error) { return may, nil })
		if got, err := mayWrite(ctx); got != may || err != nil {
			t.Fatalf("may write: %t, %v", got, err)
		}
		d.recordTick(ctx, "launch", nil, func(st decisionlog.PassStamp) (decisionlog.Tick, error) {
			mode = st.Mode
			return decisionlog.Tick{}, nil
		})
		if mode != want {
			t.Errorf("permission %t: mode %q, want %q", may, mode, want)
		}
	}
}
