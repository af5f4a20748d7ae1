package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
)

// Pauses between questions about one pod double from a tenth of a second to ten; a process that is new goes on where
// the age of the drain says that the one before was, and a pod that was evicted is forgotten.
func TestPausesBetweenQuestions(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	pause := func(b *EvictionBackoff, since time.Time) string {
		b.addRefusal("uid", since, now)
		pods := []cluster.Pod{{UID: "uid"}, {UID: "other"}}
		if b.markRetryTimes(pods); !pods[1].AskAgain.IsZero() {
			t.Error("a pod that nobody asked for is marked")
		}
		return pods[0].AskAgain.Sub(now).String()
	}
	var b EvictionBackoff
	var got []string
	for range 9 {
		got = append(got, pause(&b, time.Time{}))
	}
	if diff := cmp.Diff([]string{"100ms", "200ms", "400ms", "800ms", "1.6s", "3.2s", "6.4s", "10s", "10s"}, got); diff != "" {
		t.Error(diff)
	}
	if b.forgetPod("uid"); pause(&b, time.Time{}) != "100ms" {
		t.Error("an evicted pod is not forgotten")
	}
	for age, want := range map[time.Duration]string{0: "100ms", 100 * time.Millisecond: "100ms", 4 * time.Second: "2s", time.Minute: "10s"} {
		if got := pause(&EvictionBackoff{}, now.Add(-age)); got != want {
			t.Errorf("a new process, %s after the drain began: %s, want %s", age, got, want)
		}
	}
}
