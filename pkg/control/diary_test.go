package control

import (
	"context"
	"errors"
	"testing"

	"joiner/pkg/plan"
	"joiner/pkg/tick"
)

type diaryFunc func(tick.Tick) error

func (f diaryFunc) Note(_ context.Context, t tick.Tick) error { return f(t) }

// A decision is noted once while it stays the same, none is not noted, and an error is no reason to stop.
func TestDecisionsAreNotedOnce(t *testing.T) {
	var noted, warned int
	d := diary{to: diaryFunc(func(tick.Tick) error { noted++; return errors.New("full") }), warn: func(string, ...any) { warned++ }}
	decision := func(launches int) func(tick.Stamp) (tick.Tick, error) {
		return func(tick.Stamp) (tick.Tick, error) {
			return tick.Tick{Record: tick.Record{Launches: make([]tick.Launch, launches)}}, nil
		}
	}
	for _, c := range []struct {
		said     string
		launches int
		noted    int
	}{{"launch", 1, 1}, {"launch", 1, 1}, {"nothing", 0, 1}, {"launch", 1, 2}} {
		if d.keep(t.Context(), c.said, nil, decision(c.launches)); noted != c.noted {
			t.Errorf("%s: noted %d times, want %d", c.said, noted, c.noted)
		}
	}
	if warned != 2 {
		t.Errorf("%d warnings", warned)
	}
	if d.keep(t.Context(), "launch", []plan.Fault{{Why: "a panic"}}, decision(0)); noted != 3 {
		t.Errorf("a pass in which something failed is noted %d times", noted-2)
	}
	(&diary{}).keep(t.Context(), "launch", nil, decision(1)) // without a diary nothing happens
}
