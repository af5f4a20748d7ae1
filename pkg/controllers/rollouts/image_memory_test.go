package rollouts

import (
	"slices"
	"testing"
	"time"
)

// An answer holds for ten minutes and for the images that it is about: another last good revision is asked about anew.
func TestAnAnswerIsAboutItsImages(t *testing.T) {
	var m imageMemory
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	m.keep("r", imageAnswer{asked: []string{"ami-1"}, at: now, gone: []string{"ami-1"}})
	for _, c := range []struct {
		rollout string
		ids     []string
		after   time.Duration
		known   bool
	}{
		{"r", []string{"ami-1"}, 10*time.Minute - time.Second, true},
		{"r", []string{"ami-1"}, 10 * time.Minute, false},
		{"r", []string{"ami-2"}, 0, false},
		{"r", []string{"ami-1", "ami-2"}, 0, false},
		{"other", []string{"ami-1"}, 0, false},
	} {
		gone, known := m.recall(c.rollout, c.ids, now.Add(c.after))
		if known != c.known || known && !slices.Equal(gone, []string{"ami-1"}) {
			t.Errorf("%+v: known %t, gone %q", c, known, gone)
		}
	}
}
