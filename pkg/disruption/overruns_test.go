package disruption

import (
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
)

// Passes that came late are forgiven one by one, an hour after each other, and a clock that is set back makes nobody
// wait longer than that.
func TestPassesThatCameLateAreForgiven(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		late Overruns
		want Overruns
	}{
		{"none", Overruns{}, Overruns{}},
		{"just now", Overruns{3, now}, Overruns{3, now}},
		{"not for an hour yet", Overruns{3, now.Add(-59 * time.Minute)}, Overruns{3, now.Add(-59 * time.Minute)}},
		{"an hour ago", Overruns{3, now.Add(-time.Hour)}, Overruns{2, now}},
		{"the last, an hour ago", Overruns{1, now.Add(-time.Hour)}, Overruns{}},
		{"the clock was set back", Overruns{3, now.Add(24 * time.Hour)}, Overruns{3, now}},
		{"text that somebody changed", Overruns{-3, now}, Overruns{}},
	} {
		if got := c.late.decayAt(now); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	m := Memory{}
	for range 40 {
		m = m.RunLate(now)
	}
	counted := m.Overruns.upTo(24)
	if want := (Overruns{5, now}); counted != want || counted.reduceRules(disruptionRules{steps: 24}).steps != 0 {
		t.Errorf("forty of them, once a pass of 24 questions ends: %v, want %v, which asks nothing", counted, want)
	}
	if got := newState(cluster.Snapshot{Now: now}, m, nil, nil); got.late != counted || got.rules.steps != 0 {
		t.Errorf("a pass reckons with %v and asks %d questions", got.late, got.rules.steps)
	}
	if m = (Memory{Overruns: Overruns{3, now.Add(-90 * time.Minute)}}); m.RunLate(now).Overruns != (Overruns{3, now}) {
		t.Errorf("one more an hour and a half later: %v, want 3", m.RunLate(now).Overruns)
	}
}
