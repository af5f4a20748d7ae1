package search_test

import (
	"fmt"
	"testing"
	"time"

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
	p := decide(w)
	if len(p.Launches) != 1 || len(p.Existing)+len(p.Unplaced) > 0 {
		t.Errorf("want one new node:\n%s", p)
	}
}

// A claim that got no instance within all time that there is for one, and stays because nobody may delete it, is no
// capacity for pods any more, and takes no part of its pool's limits.
func TestAClaimThatNobodyMayDelete(t *testing.T) {
	for age, want := range map[time.Duration]string{19 * time.Minute: "existing 1, launches 0", 20 * time.Minute: "existing 0, launches 1"} {
		w, err := scenario.FromText([]string{"type m5.large cpu=2000 mem=8192 milliusd=96", "pool default",
			"claim stuck pool=default types=(m5.large) zones=(a) cpu=900 mem=100 pods=1", "pods web cpu=900 mem=100"})
		if err != nil {
			t.Fatal(err)
		}
		w.Snapshot.Rules.LaunchTimeout, w.Snapshot.Rules.RegistrationTimeout = 5*time.Minute, 15*time.Minute
		w.Snapshot.Claims[0].Created = w.Snapshot.Now.Add(-age)
		w.Snapshot.Pools[0].Limits, w.Snapshot.Pools[0].Limited = resources.List{CPU: 3000}, []string{resources.CPU}
		p := decide(w)
		if got := fmt.Sprintf("existing %d, launches %d", len(p.Existing), len(p.Launches)); got != want {
			t.Errorf("%s old: %s, want %s\n%s", age, got, want, p)
		}
	}
}
