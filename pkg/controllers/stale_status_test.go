package controllers

import (
	"log/slog"
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// TestUnseenWakesRefreshOnce: a new class or an edited pool does not wait for the schedule, and one invocation asks
// once.
func TestUnseenWakesRefreshOnce(t *testing.T) {
	for what, fresh := range map[string]cluster.Snapshot{
		"class": {Classes: []instancetypes.Class{{Name: "default"}, {Name: "new", Unseen: true}}},
		"pool":  {Classes: []instancetypes.Class{{Name: "default"}}, Pools: []cluster.Pool{{Name: "default"}, {Name: "edited", Unseen: true}}},
	} {
		t.Run(what, func(t *testing.T) { wakesOnce(t, fresh) })
	}
}

func wakesOnce(t *testing.T, fresh cluster.Snapshot) {
	var u StaleStatus
	b := &bell{}
	seen := cluster.Snapshot{Classes: []instancetypes.Class{{Name: "default"}}, Pools: []cluster.Pool{{Name: "default"}}}
	for i, c := range []struct {
		s     cluster.Snapshot
		waits bool
		rung  int
	}{{seen, false, 0}, {fresh, true, 1}, {fresh, true, 1}, {seen, false, 1}} {
		waits, err := u.WakeRefresh(BeginPass(t.Context(), nil), c.s, b, slog.New(slog.DiscardHandler))
		if err != nil || waits != c.waits || b.rung != c.rung {
			t.Errorf("look %d: waits %t, refresh woken %d times, error %v; want %t and %d", i, waits, b.rung, err, c.waits, c.rung)
		}
	}
}
