package binpack

import (
	"testing"

	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/scenario"
)

// A node that no claim made and that has not told yet what it has takes no pods, and stops nobody.
func TestANodeThatHasNotToldWhatItHas(t *testing.T) {
	w, err := scenario.FromText([]string{"type m5.large cpu=2000 mem=8192 milliusd=96", "pool default",
		"node foreign type=m5.large zone=a unmanaged", "pods web cpu=900 mem=100"})
	if err != nil {
		t.Fatal(err)
	}
	w.Snapshot.Nodes[0].Allocatable = resources.List{}
	p := PodsFrom(w.Snapshot, w.Market)
	if len(p.Launches) != 1 || len(p.Existing)+len(p.Unplaced) > 0 {
		t.Errorf("want one new node:\n%s", p)
	}
}
