package notices_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/events"
	"joiner.sh/pkg/controllers/notices"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// Each field of an event that handling looks at is taken over.
func TestNoticesSayAllThatEventsSay(t *testing.T) {
	at := func(hour, minute, second int) time.Time {
		return time.Date(2026, 9, 14, hour, minute, second, 0, time.UTC)
	}
	planned := func(id string) interruption.Notice {
		return interruption.Notice{Kind: interruption.Scheduled, Instance: id, Time: at(12, 6, 2),
			At: time.Date(2026, 9, 28, 3, 0, 0, 0, time.UTC)}
	}
	for name, want := range map[string][]interruption.Notice{
		"scheduled-change.sample.json": {planned("i-0c41f8e9d72b5a603"), planned("i-0be57d2140fa96c83")},
		"spot-interruption.sample.json": {{Kind: interruption.Spot, Instance: "i-0f3c9a7d51be2846c", Time: at(17, 42, 8),
			Action: "terminate"}},
		"reservation-interruption.sample.json": {{Kind: interruption.Reservation, Instance: "i-0e8b4a6f3d19c7052",
			Time: at(20, 15, 3), At: at(20, 17, 3), Action: "terminate"}},
		"rebalance.sample.json": {{Kind: interruption.Rebalance, Instance: "i-0f3c9a7d51be2846c", Time: at(17, 31, 55)}},
		"state-change.shutting-down.sample.json": {{Kind: interruption.Ending, Instance: "i-0f3c9a7d51be2846c",
			Time: at(17, 44, 9)}},
	} {
		stem, _, _ := strings.Cut(name, ".")
		kind := events.Kind(stem)
		samples, err := kind.Samples()
		if err != nil || samples[name] == nil {
			t.Fatal(name, err)
		}
		got, err := notices.Location{}.DecodeNotices(kind, samples[name])
		if err != nil {
			t.Fatalf("%s: error %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
