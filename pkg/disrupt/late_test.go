package disrupt

import (
	"testing"
	"time"
)

// Passes that came late are forgiven one by one, an hour after each other, and a clock that is set back makes nobody wait longer than that.
func TestPassesThatCameLateAreForgiven(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		late Late
		want Late
	}{
		{"none", Late{}, Late{}},
		{"just now", Late{3, now}, Late{3, now}},
		{"not for an hour yet", Late{3, now.Add(-59 * time.Minute)}, Late{3, now.Add(-59 * time.Minute)}},
		{"an hour ago", Late{3, now.Add(-time.Hour)}, Late{2, now}},
		{"the last, an hour ago", Late{1, now.Add(-time.Hour)}, Late{}},
		{"the clock was set back", Late{3, now.Add(24 * time.Hour)}, Late{3, now}},
		{"text that somebody changed", Late{-3, now}, Late{}},
	} {
		if got := c.late.at(now); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	m := Memory{}
	for range 40 {
		m = m.RunLate(now)
	}
	if want := (Late{10, now}); m.Late != want {
		t.Errorf("forty of them: %v, want %v", m.Late, want)
	}
	if m = (Memory{Late: Late{3, now.Add(-90 * time.Minute)}}); m.RunLate(now).Late != (Late{3, now}) {
		t.Errorf("one more an hour and a half later: %v, want 3", m.RunLate(now).Late)
	}
}
