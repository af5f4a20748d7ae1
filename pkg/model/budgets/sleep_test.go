package budgets_test

import (
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
)

// A pool sleeps for its time from each start, by the clock of its zone; what cannot be understood lets it wake.
func TestAsleep(t *testing.T) {
	night := cluster.Disruption{SleepAt: "0 20 * * 1-5", SleepFor: 12 * time.Hour, TimeZone: "Europe/Berlin"}
	for at, want := range map[string]bool{
		"2026-11-23T18:59:00Z": false, "2026-11-23T19:00:00Z": true, // Monday, 20:00 in Berlin in winter
		"2026-11-24T06:59:00Z": true, "2026-11-24T07:00:00Z": false,
		"2026-07-06T18:00:00Z": true,  // in summer
		"2026-11-22T20:00:00Z": false, // Sunday
	} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := budgets.IsHibernating(night, now); got != want {
			t.Errorf("%s: asleep %t", at, got)
		}
	}
	for at, want := range map[string]string{"2026-11-23T20:00:00Z": "2026-11-24T07:00:00Z", "2026-11-23T18:59:00Z": "0001-01-01T00:00:00Z"} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := budgets.WakeTime(night, now).Format(time.RFC3339); got != want {
			t.Errorf("%s: wakes %s, want %s", at, got, want)
		}
	}
	days := cluster.Disruption{SleepAt: "0 8 * * 1,2,3", SleepFor: 30 * time.Hour, SleepZone: "Asia/Tokyo", TimeZone: "Europe/Berlin"}
	if got := budgets.WakeTime(days, time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)); !got.Equal(time.Date(2026, 11, 26, 5, 0, 0, 0, time.UTC)) {
		t.Errorf("starts that overlap: it wakes %s, want 30 hours after the last, Wednesday 08:00 in Tokyo", got)
	}
	always := cluster.Disruption{SleepAt: "0 * * * *", SleepFor: time.Hour}
	if got := budgets.WakeTime(always, time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)); !got.IsZero() {
		t.Errorf("one that never wakes wakes %s", got)
	}
	for want, d := range map[string]cluster.Disruption{
		"sleep: schedule and duration go together": {SleepAt: "@daily"},
		"sleep: schedule \"often\"":                {SleepAt: "often", SleepFor: time.Hour},
		"the duration is longer than 0":            {SleepFor: time.Hour},
	} {
		if err := budgets.ValidateBudgets(d); err == nil || !strings.Contains(err.Error(), want) || budgets.IsHibernating(d, time.Now()) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
