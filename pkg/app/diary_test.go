package app

import (
	"context"
	"log/slog"
	"testing"

	"joiner/pkg/controllers/dryrun"
	"joiner/pkg/decisionlog"
	"joiner/pkg/settings"
)

// kept is the last tick that was noted.
type kept struct{ decisionlog.Tick }

func (k *kept) WriteTick(_ context.Context, t decisionlog.Tick) error {
	k.Tick = t
	return nil
}

// A pass that could change nothing, because another controller leads, is not told as one that acted.
func TestAPassThatMayNotActIsObserved(t *testing.T) {
	for open, want := range map[bool]string{true: settings.ModeAct, false: settings.ModeObserve} {
		var k kept
		o := observedLog{&k, &dryrun.Gate{Open: func(context.Context) (bool, error) { return open, nil }, Log: slog.New(slog.DiscardHandler)}}
		var in decisionlog.Tick
		in.Mode = settings.ModeAct
		if err := o.WriteTick(t.Context(), in); err != nil || k.Mode != want {
			t.Errorf("open %t: mode %q, %v; want %q", open, k.Mode, err, want)
		}
	}
}
