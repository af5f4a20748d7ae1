package binpack

import (
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
)

// Nothing is launched from a pool that sleeps, and the plan says so.
func TestASleepingPoolTakesNoPart(t *testing.T) {
	night := cluster.Disruption{SleepAt: "0 20 * * *", SleepFor: 8 * time.Hour}
	for hour, want := range map[int]string{12: "its EC2NodeClass  does not exist", 21: `it sleeps, for 8h0m0s from each "0 20 * * *" on`} {
		p := Pods(cluster.Snapshot{Now: time.Date(2026, 11, 22, hour, 0, 0, 0, time.UTC), Pools: []cluster.Pool{{Name: "a", Ready: true, Disruption: night}}})
		if len(p.Skipped) != 1 || p.Skipped[0].Why != want {
			t.Errorf("at %d: %+v, want %s", hour, p.Skipped, want)
		}
	}
}
