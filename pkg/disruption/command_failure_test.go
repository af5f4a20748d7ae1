package disruption

import (
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
)

// A consolidation that fails again and again is tried ever less often, but every eight hours.
func TestWaitAfter(t *testing.T) {
	r := rulesOf(cluster.Settings{})
	for again, want := range []time.Duration{time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 8 * time.Hour, 8 * time.Hour} {
		if got := r.waitAfter(CommandFailure{Again: again}); got != want {
			t.Errorf("after %d: %s, want %s", again, got, want)
		}
	}
}
