package notices_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// lease is the lease of an invocation that died: it lasts until then.
type lease struct{ until time.Time }

func (l lease) LeaseSign(context.Context, string) (string, error) {
	if time.Now().Before(l.until) {
		return "dead", nil
	}
	return "", nil
}

// TestNoticeIsNotLeftToAnInvocationThatDied: both seemed to watch when the notice came. Spot notices make sure of it,
// others have time until the next tick.
func TestNoticeIsNotLeftToAnInvocationThatDied(t *testing.T) {
	for kind, want := range map[interruption.Kind]int{interruption.Spot: 1, interruption.Reservation: 1, interruption.Scheduled: 0} {
		synctest.Test(t, func(t *testing.T) {
			f := controllertest.RunningPods(t)
			p := f.World.Ports(fake.Fault{})
			n := controllertest.SpotNotice(f.World)
			n.Kind = kind
			dead := lease{time.Now().Add(6 * time.Second)}
			c := f.Interruption(p)
			log := slog.New(slog.DiscardHandler)
			c.Provision = controllers.WakeUnlessWatching{Waker: p.NewWaker("provision"), Of: dead, Function: "provision", Log: log}
			c.Lifecycle = controllers.WakeUnlessWatching{Waker: p.NewWaker("lifecycle"), Of: dead, Function: "lifecycle", Log: log}
			provision, lifecycle, began := f.World.CountWakeups("provision"), f.World.CountWakeups("lifecycle"), time.Now()
			if err := c.HandleNotices(context.Background(), n); err != nil {
				t.Fatal(err)
			}
			if a, b := f.World.CountWakeups("provision")-provision, f.World.CountWakeups("lifecycle")-lifecycle; a != want || b != want {
				t.Errorf("%s: provision was woken %d times, lifecycle %d times, want %d", kind, a, b, want)
			}
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("%s: it took %s", kind, took)
			}
		})
	}
}
