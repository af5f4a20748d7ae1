package settings_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/settings"
)

// TestConcurrencyIsPlannedFromTheAccount: however many clusters there are, they can all be deployed, and half of what
// could be reserved stays for everybody.
func TestConcurrencyIsPlannedFromTheAccount(t *testing.T) {
	auto := settings.Concurrency{Alone: 4, Spot: settings.Auto, Reservation: settings.Auto}
	for _, c := range []struct {
		clusters, spot, reservation int
	}{
		{1, 100, 10}, {4, 100, 10}, {5, 88, 0}, {8, 54, 0}, {20, 20, 0}, {21, 0, 0}, {30, 0, 0},
	} {
		got := settings.PlanConcurrency(slices.Repeat([]settings.Concurrency{auto}, c.clusters))
		want := slices.Repeat([]settings.Concurrency{{Alone: 4, Spot: c.spot, Reservation: c.reservation}}, c.clusters)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d clusters in an account (-want +got):\n%s", c.clusters, d)
		}
		sum := 0
		for _, k := range got {
			sum += k.Alone + k.Spot + k.Reservation
		}
		if sum > 900 {
			t.Errorf("%d clusters reserve %d, and an account lets 900 be reserved", c.clusters, sum)
		}
	}
}

// TestNumbersThatSomebodyWroteStay, and the others share what they leave.
func TestNumbersThatSomebodyWroteStay(t *testing.T) {
	got := settings.PlanConcurrency([]settings.Concurrency{{Alone: 5, Spot: 700, Reservation: 0}, {Alone: 4, Spot: settings.Auto, Reservation: 7}, {Alone: 4, Spot: 0, Reservation: settings.Auto}})
	want := []settings.Concurrency{{Alone: 5, Spot: 700}, {Alone: 4, Spot: 45, Reservation: 7}, {Alone: 4, Reservation: 10}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
