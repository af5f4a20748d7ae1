package app

import (
	"context"
	"log/slog"
	"testing"

	"joiner/pkg/gate"
	"joiner/pkg/setting"
	"joiner/pkg/tick"
)

// kept is the last tick that was noted.
type kept struct{ tick.Tick }

func (k *kept) Note(_ context.Context, t tick.Tick) error {
	k.Tick = t
	return nil
}

// A pass that could change nothing, because another controller leads, is not told as one that acted.
func TestAPassThatMayNotActIsObserved(t *testing.T) {
	for open, want := range map[bool]string{true: setting.ModeAct, false: setting.ModeObserve} {
		var k kept
		o := observed{&k, &gate.Gate{Open: func(context.Context) (bool, error) { return open, nil }, Log: slog.New(slog.DiscardHandler)}}
		var in tick.Tick
		in.Mode = setting.ModeAct
		if err := o.Note(t.Context(), in); err != nil || k.Mode != want {
			t.Errorf("open %t: mode %q, %v; want %q", open, k.Mode, err, want)
		}
	}
}
