package notices_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// watched answers for functions by name whether somebody watches.
type watched map[string]bool

func (w watched) LeaseSign(_ context.Context, name string) (string, error) {
	if w[name] {
		return "alive", nil
	}
	return "", nil
}

// TestAnInstanceThatRunsIsLeftToThoseWhoWatch: no claim is looked for when nobody would be woken. What ends is looked
// into in any case.
func TestAnInstanceThatRunsIsLeftToThoseWhoWatch(t *testing.T) {
	both := watched{"joiner-watch-lifecycle": true, "joiner-watch-provision": true}
	for _, c := range []struct {
		name string
		kind interruption.Kind
		of   watched
		left bool
	}{
		{"both watch", interruption.Running, both, true},
		{"provision does not", interruption.Running, watched{"joiner-watch-lifecycle": true}, false},
		{"lifecycle does not", interruption.Running, watched{"joiner-watch-provision": true}, false},
		{"it ends", interruption.Ending, both, false},
		{"it has ended", interruption.Ended, both, false},
		{"it stops", interruption.Stopping, both, false},
		{"EC2 takes it back", interruption.Spot, both, false},
	} {
		f := controllertest.RunningPods(t)
		p := f.World.Ports(fake.Fault{})
		controller, n, log := f.Interruption(p), controllertest.SpotNotice(f.World), slog.New(slog.DiscardHandler)
		n.Kind = c.kind
		controller.Provision = controllers.WakeUnlessWatching{Waker: p.NewWaker("provision"), Of: c.of, Function: "provision", Log: log}
		controller.Lifecycle = controllers.WakeUnlessWatching{Waker: p.NewWaker("lifecycle"), Of: c.of, Function: "lifecycle", Log: log}
		if err := controller.HandleNotices(context.Background(), n); err != nil {
			t.Fatal(err)
		}
		if calls := p.Calls(); (len(calls) == 0) != c.left {
			t.Errorf("%s: asked for %v", c.name, slices.Compact(calls))
		}
	}
}
