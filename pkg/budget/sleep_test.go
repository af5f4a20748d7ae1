package budget_test

import (
	"strings"
	"testing"
	"time"

	"joiner/pkg/budget"
	"joiner/pkg/cluster"
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
		if got := budget.Asleep(night, now); got != want {
			t.Errorf("%s: asleep %t", at, got)
		}
	}
	for want, d := range map[string]cluster.Disruption{
		"sleep: schedule and duration go together": {SleepAt: "@daily"},
		"sleep: schedule \"often\"":                {SleepAt: "often", SleepFor: time.Hour},
	} {
		if err := budget.Check(d); err == nil || !strings.Contains(err.Error(), want) || budget.Asleep(d, time.Now()) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
