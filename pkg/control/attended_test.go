package control_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"joiner/pkg/control"
	"joiner/pkg/controltest"
	"joiner/pkg/interrupt"
)

// watched answers for functions by name whether somebody watches.
type watched map[string]bool

func (w watched) Sign(_ context.Context, name string) (string, error) {
	if w[name] {
		return "alive", nil
	}
	return "", nil
}

// TestAnInstanceThatRunsIsLeftToThoseWhoWatch: no claim is looked for when nobody would be woken. What ends is looked into in any case.
func TestAnInstanceThatRunsIsLeftToThoseWhoWatch(t *testing.T) {
	both := watched{"joiner-watch-lifecycle": true, "joiner-watch-provision": true}
	for _, c := range []struct {
		name string
		kind interrupt.Kind
		of   watched
		left bool
	}{
		{"both watch", interrupt.Running, both, true},
		{"provision does not", interrupt.Running, watched{"joiner-watch-lifecycle": true}, false},
		{"lifecycle does not", interrupt.Running, watched{"joiner-watch-provision": true}, false},
		{"it ends", interrupt.Ending, both, false},
		{"it has ended", interrupt.Ended, both, false},
		{"it stops", interrupt.Stopping, both, false},
		{"EC2 takes it back", interrupt.Spot, both, false},
	} {
		f := running(t)
		p := f.w.Ports(controltest.Fault{})
		i, n, log := f.interruption(p), notice(f.w), slog.New(slog.DiscardHandler)
		n.Kind = c.kind
		i.Provision = control.Considerate{Waker: p.Waker("provision"), Of: c.of, Function: "provision", Log: log}
		i.Lifecycle = control.Considerate{Waker: p.Waker("lifecycle"), Of: c.of, Function: "lifecycle", Log: log}
		if err := i.Notices(context.Background(), n); err != nil {
			t.Fatal(err)
		}
		if calls := p.Calls(); (len(calls) == 0) != c.left {
			t.Errorf("%s: asked for %v", c.name, slices.Compact(calls))
		}
	}
}
