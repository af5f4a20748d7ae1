package binpack

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner/pkg/model/cluster"
	"joiner/pkg/testing/scenario"
)

// What is in stock answers every question as looking anew would: about the snapshot, and about the same with a third of
// its nodes gone with their claims and their pods waiting.
func TestStockAnswersAlike(t *testing.T) {
	asked, placed := 0, 0
	for seed := range uint64(60) {
		w, err := scenario.Wild(seed)
		if err != nil {
			t.Fatal(err)
		}
		st := NewWhatIf(w.Snapshot, w.Market)
		for part := range 4 {
			s := gone(w.Snapshot, part)
			want, got := PodsFrom(s, w.Market), st.PlanPods(s)
			asked, placed = asked+1, placed+len(want.Existing)+len(want.Launches)
			if diff := cmp.Diff(want.Lines(), got.Lines()); diff != "" {
				t.Fatalf("seed %d, part %d (-anew +in stock):\n%s", seed, part, diff)
			}
		}
	}
	if asked < 200 || placed < 1000 {
		t.Errorf("%d questions, %d pods and nodes placed: too little to test anything", asked, placed)
	}
}

// gone is the snapshot without every third node, from the one of that number on; 3 leaves all.
func gone(s cluster.Snapshot, part int) cluster.Snapshot {
	out := map[string]bool{}
	for i, n := range s.Nodes {
		if i%3 == part {
			out[n.Name] = true
		}
	}
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n cluster.Node) bool { return out[n.Name] })
	s.Claims = slices.DeleteFunc(slices.Clone(s.Claims), func(c cluster.Claim) bool { return out[c.NodeName] })
	s.Pods = slices.Clone(s.Pods)
	for i := range s.Pods {
		if p := &s.Pods[i]; out[p.NodeName] && p.Reschedulable() {
			p.NodeName, p.Unscheduled = "", true
		}
	}
	return s
}

// No new nodes cost less than the pods on them are worth, whichever nodes were gone; and pods are worth something.
func TestWorthIsNoMoreThanNewNodesCost(t *testing.T) {
	launched, tight := 0, 0
	for seed := range uint64(120) {
		w, err := scenario.Wild(seed)
		if err != nil {
			t.Fatal(err)
		}
		st := NewWhatIf(w.Snapshot, w.Market)
		worth := st.PodPrices(w.Snapshot, nil)
		for part := range 4 {
			cost, sum := 0.0, 0.0
			for _, l := range st.PlanPods(gone(w.Snapshot, part)).Launches {
				cost += l.Choice.Price
				launched++
				for _, p := range l.Pods {
					sum += worth[p]
				}
			}
			if sum > cost*(1+1e-6)+1e-6 { // reserved nodes cost as good as nothing
				t.Errorf("seed %d, part %d: pods worth %.4f USD/h run on new nodes for %.4f", seed, part, sum, cost)
			}
			if sum > cost*0.8 {
				tight++
			}
		}
	}
	if launched < 500 || tight < 40 {
		t.Errorf("%d nodes, %d questions near the bound: too little to test anything", launched, tight)
	}
}
