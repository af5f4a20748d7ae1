package controllers

import (
	"context"
	"errors"
	"testing"

	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/model/plan"
)

type diaryFunc func(decisionlog.Pass) error

func (f diaryFunc) WritePass(_ context.Context, p decisionlog.Pass) error { return f(p) }

// A decision is noted once while it stays the same, none is not noted, and an error is no reason to stop.
func TestDecisionsAreNotedOnce(t *testing.T) {
	var noted, warned int
	d := DecisionRecorder{To: diaryFunc(func(decisionlog.Pass) error { noted++; return errors.New("full") }), Warn: func(string, ...any) { warned++ }}
	decision := func(launches int) func(decisionlog.PassStamp) (decisionlog.Pass, error) {
		return func(decisionlog.PassStamp) (decisionlog.Pass, error) {
			return decisionlog.Pass{Record: decisionlog.Record{Launches: make([]decisionlog.Launch, launches)}}, nil
		}
	}
	for _, c := range []struct {
		said     string
		launches int
		noted    int
	}{{"launch", 1, 1}, {"launch", 1, 1}, {"nothing", 0, 1}, {"launch", 1, 2}} {
		if d.RecordPass(t.Context(), c.said, nil, decision(c.launches)); noted != c.noted {
			t.Errorf("%s: noted %d times, want %d", c.said, noted, c.noted)
		}
	}
	if warned != 2 {
		t.Errorf("%d warnings", warned)
	}
	if d.RecordPass(t.Context(), "launch", []plan.Fault{{Why: "a panic"}}, decision(0)); noted != 3 {
		t.Errorf("a pass in which something failed is noted %d times", noted-2)
	}
	(&DecisionRecorder{}).RecordPass(t.Context(), "launch", nil, decision(1)) // without a diary nothing happens
}

// A pass that could write nothing, because another controller leads, is not told as one that acted.
func TestAPassThatMayNotWriteIsKeptAsObserved(t *testing.T) {
	for may, want := range map[bool]string{true: "act", false: "observe"} {
		var mode string
		d := DecisionRecorder{To: diaryFunc(func(decisionlog.Pass) error { return nil }), Stamp: decisionlog.PassStamp{Mode: "act"}, Warn: t.Logf}
		ctx := BeginPass(t.Context(), func(context.Context) (bool, error) { return may, nil })
		if got, err := MayWrite(ctx); got != may || err != nil {
			t.Fatalf("may write: %t, %v", got, err)
		}
		d.RecordPass(ctx, "launch", nil, func(st decisionlog.PassStamp) (decisionlog.Pass, error) {
			mode = st.Mode
			return decisionlog.Pass{}, nil
		})
		if mode != want {
			t.Errorf("permission %t: mode %q, want %q", may, mode, want)
		}
	}
}
