package ceiling

import (
	"testing"
	"time"
)

func TestPacing(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := Pacing{}
	for i, x := range []struct {
		after             time.Duration
		refused, launched int
		want              int
	}{
		{0, 0, 0, 0},
		{time.Second, 0, 90, 0},
		{time.Second, 3, 90, 45}, // half of what was launched
		{time.Second, 3, 45, 45},
		{time.Second, 4, 45, 22},
		{time.Second, 5, 1, 1}, // at least one
		{time.Second, 6, 0, 1},
		{9 * time.Second, 6, 0, 1},
		{time.Second, 6, 1, 2}, // twice as many every ten seconds
		{20 * time.Second, 6, 2, 8},
		{70 * time.Second, 6, 8, 0}, // as fast as it can
		{time.Second, 6, 100, 0},
		{time.Second, 7, 0, 1},
	} {
		now = now.Add(x.after)
		if p = p.Next(x.refused, x.launched, now); p.Most != x.want {
			t.Errorf("step %d: %d launches a pass, want %d", i, p.Most, x.want)
		}
	}
}
