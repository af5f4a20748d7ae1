package sim_test

import (
	"flag"
	"testing"

	"joiner/pkg/sim"
)

var hours = flag.Int("hours", 3, "how many hours of a day TestDay plays")

// TestDay plays a day on which nothing fails and disrupt runs: go test ./pkg/sim -run TestDay -v -args -hours 24.
func TestDay(t *testing.T) {
	moves := 0
	r := sim.Run(t, sim.Scenario{Seed: *first, Catalog: market(), Day: *hours, Hour: func(h sim.Hour) {
		t.Logf("%02d:00 %3d nodes, %3d pods, %d waiting, %.3f USD/h, %d changes", h.Hour+1, h.Nodes, h.Pods, h.Waiting, h.USD, h.Mutations)
		moves += h.Mutations
	}})
	for _, v := range r.Violations {
		t.Errorf("%s\n%s", v, r.Trace)
	}
	if moves == 0 || r.Mutations["launch"] == 0 {
		t.Errorf("nothing happened: %v", r.Mutations)
	}
}
