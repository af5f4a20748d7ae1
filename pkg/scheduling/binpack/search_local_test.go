package binpack

import (
	"testing"

	"joiner/pkg/model/cluster"
	"joiner/pkg/testing/scenario"
)

// A search never makes a plan dearer nor leaves more pods without a home, and it makes some plans cheaper. That what it
// makes keeps every rule and does not depend on the order of its input is checked where all plans are.
func TestSearchOnlyEverSaves(t *testing.T) {
	cheaper := 0
	for seed := range uint64(600) {
		w, err := scenario.Random(seed)
		if err != nil {
			t.Fatal(err)
		}
		searched := decide(w)
		w.Snapshot.Rules.PackingIterations = cluster.NoIterations
		first := decide(w)
		cost := func(price float64, nodes int) float64 { return price + defaultNodeCost*float64(nodes) }
		before, after := cost(first.TotalPrice(), len(first.Launches)), cost(searched.TotalPrice(), len(searched.Launches))
		if len(searched.Unplaced) != len(first.Unplaced) || after > before*(1+1e-9) {
			t.Errorf("seed %d: %v and %d unplaced with a search, %v and %d without", seed, after, len(searched.Unplaced), before, len(first.Unplaced))
		}
		if after < before*(1-1e-6) {
			cheaper++
		}
	}
	if cheaper < 20 {
		t.Errorf("only %d plans became cheaper", cheaper)
	}
}
