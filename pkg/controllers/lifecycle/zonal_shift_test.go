package lifecycle_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// shifts says which zones are shifted away from.
type shifts struct{ is *cluster.ZonalShifts }

func (s *shifts) ListShifts(context.Context) *cluster.ZonalShifts { return s.is }

// TestAZonalShiftIsToldAndKeepsInstances: each zone's event comes for a shift and for its end, and an
// instance in a zone is terminated when its shift is over and not before. Whichever call of the first pass fails, both are told.
func TestAZonalShiftIsToldAndKeepsInstances(t *testing.T) {
	calls := playShift(t, fake.Fault{})
	for n := range calls {
		for _, fatal := range []bool{false, true} {
			playShift(t, fake.Fault{Call: n + 1, Fatal: fatal})
		}
	}
}

// playShift has all zones shifted away from, and then none. The first pass has the fault; it returns how many calls that
// makes.
func playShift(t *testing.T, fault fake.Fault) int {
	t.Helper()
	f := controllertest.Aged(t)
	zones := slices.Sorted(maps.Values(f.World.Catalog.Zones))
	old := map[string]bool{}
	for _, i := range f.World.Instances() {
		old[i.ID] = i.State == "running"
	}
	away := &shifts{&cluster.ZonalShifts{ZoneIDs: zones}}
	run := func(fault fake.Fault) ([]string, error) {
		p := f.World.Ports(fault)
		l := f.Lifecycle(p)
		l.Shifts = away
		err := l.Run(context.Background(), f.World.Now().Add(10*time.Second))
		f.World.Advance(10 * time.Second)
		if err := f.Provision(f.World.Ports(fake.Fault{})).Run(context.Background(), f.Once()); err != nil {
			t.Fatal(err) // what is drained needs other nodes
		}
		f.World.Advance(20 * time.Second)
		return p.Calls(), err
	}
	wants := func(reason string, running bool) {
		t.Helper()
		told := map[string]bool{}
		for _, e := range f.World.Events("NodePool") {
			if controllertest.HasReason(reason)(e) {
				told[e] = true
			}
		}
		runs := slices.ContainsFunc(f.World.Instances(), func(i cluster.Instance) bool { return old[i.ID] && i.State == "running" })
		if len(told) != len(zones) || runs != running {
			t.Errorf("%s: %d events %s for %d zones; an instance of before runs: %t", fault, len(told), reason, len(zones), runs)
		}
	}
	first, _ := run(fault) // the next pass mends what failed
	f.World.DeleteClaims()
	for _, when := range []struct {
		shifted []string
		reason  string
		running bool
	}{{zones, "ZonalShiftActive", true}, {nil, "ZonalShiftCleared", false}} {
		away.is = &cluster.ZonalShifts{ZoneIDs: when.shifted}
		for range 20 {
			if _, err := run(fake.Fault{}); err != nil {
				t.Fatal(err)
			}
		}
		wants(when.reason, when.running)
	}
	return len(first)
}
