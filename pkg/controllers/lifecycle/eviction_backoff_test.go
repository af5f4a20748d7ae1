package lifecycle_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/controllers/lifecycle"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// refusing is a world whose eviction API refuses everything, for a reason that no budget tells, and counts.
type refusing struct {
	*fake.Ports
	asked *int
}

func (r refusing) EvictPod(context.Context, cluster.Pod) (cluster.Eviction, error) {
	*r.asked++
	return cluster.Eviction{Outcome: cluster.Refused, Message: "a webhook says no"}, nil
}

// TestRefusedEvictionsAreAskedForLessAndLess counts questions about one pod.
func TestRefusedEvictionsAreAskedForLessAndLess(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	f.Rest(t, 4)
	f.World.DeleteClaims()
	asked := 0
	invoke := func(warm *lifecycle.EvictionBackoff, stay time.Duration) int {
		t.Helper()
		before := asked
		l := f.Lifecycle(f.World.Ports(fake.Fault{}))
		l.Pods, l.Refusals = refusing{f.World.Ports(fake.Fault{}), &asked}, warm
		if err := l.Run(context.Background(), f.World.Now().Add(stay)); err != nil {
			t.Fatal(err)
		}
		return asked - before
	}
	warm := &lifecycle.EvictionBackoff{}
	// 0.1 s doubling to 10 s, in passes of a second: 0 1 2 3 5 8 15 25 35 45
	if n := invoke(warm, 50*time.Second); n < 8 || n > 14 {
		t.Errorf("in the first 50 seconds it was asked %d times", n)
	}
	if n := invoke(warm, 50*time.Second); n < 4 || n > 6 {
		t.Errorf("by the same process in the next 50 seconds %d times", n)
	}
	if n := invoke(nil, 50*time.Second); n < 4 || n > 7 {
		t.Errorf("by a new process %d times: it does not start with short pauses", n)
	}
	if !strings.Contains(strings.Join(f.World.Events("Pod"), "\n"), "FailedDraining: a webhook says no") {
		t.Errorf("events on the pod: %q", f.World.Events("Pod"))
	}
}
