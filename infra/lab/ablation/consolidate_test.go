package main

import (
	"slices"
	"testing"
)

// What the bench keeps becomes rows of one family, by name, and a cluster that is never at rest is wrong.
func TestClustersBecomeRows(t *testing.T) {
	got, err := consolidatedRows([]byte(`{"mixed-50 seed 2": {"USD": 8, "CPU": 1.5, "Moved": 30, "Cut": true},
		"burst-50 seed 1": {"USD": 7, "Before": 15, "Faults": ["a pod waits"]}}`))
	want := []row{{Workload: "consolidation/burst-50-1", HourlyUSD: 7, Wrong: 1},
		{Workload: "consolidation/mixed-50-2", HourlyUSD: 8, CPU: 1.5, Moved: 30, Wrong: 1}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if family := familyOf(want[0].Workload); family != "consolidation" {
		t.Errorf("the family is %s", family)
	}
	if _, err := consolidatedRows([]byte("{")); err == nil {
		t.Error("half a file is read")
	}
}

// Only what can differ is measured, all of what is now.
func TestRoomsOfAVariant(t *testing.T) {
	of := func(file string) variant { return variant{Name: "a", Edits: []edit{{file: file}}} }
	for _, c := range []struct {
		variant
		packs, consolidates bool
	}{
		{variant{Name: asItIs}, true, true},
		{of("pkg/disruption/simulator/room.go"), false, true},
		{of("pkg/scheduling/search/solve.go"), true, false},
	} {
		if c.variant.packs() != c.packs || c.variant.consolidates() != c.consolidates {
			t.Errorf("%v: packs %t, consolidates %t", c.variant, c.variant.packs(), c.variant.consolidates())
		}
	}
}
