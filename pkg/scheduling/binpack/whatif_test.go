package binpack

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

// What is in stock answers every question as looking anew would: about the snapshot, and about the same with a third of
// its nodes gone with their claims and their pods waiting.
func TestStockAnswersAlike(t *testing.T) {
	t.Parallel()
	asked, placed := 0, 0
	n := shortrun.Of(60, 6)
	for seed := range uint64(n) {
		w, err := scenario.Wild(seed)
		if err != nil {
			t.Fatal(err)
		}
		whatIf := newWhatIf(w.Snapshot, w.Market)
		for part := range 4 {
			s := gone(w.Snapshot, part)
			want, got := PodsFrom(s, w.Market), whatIf.PlanPods(s)
			asked, placed = asked+1, placed+len(want.Existing)+len(want.Launches)
			if diff := cmp.Diff(want.Lines(), got.Lines()); diff != "" {
				t.Fatalf("seed %d, part %d (-anew +in stock):\n%s", seed, part, diff)
			}
		}
	}
	if asked < 3*n || placed < 16*n {
		t.Errorf("%d questions, %d pods and nodes placed: too little to test anything", asked, placed)
	}
}

// A stock for edits answers each question as looking anew would, however pods, pools and settings were edited before;
// and it says of no pod that nothing could take it which has a place.
func TestEditedStockAnswersAlike(t *testing.T) {
	t.Parallel()
	edited, placed, refused := 0, 0, 0
	pools := func(change func(p *cluster.Pool)) func(s *cluster.Snapshot, i int) {
		return func(s *cluster.Snapshot, i int) {
			s.Pools = slices.Clone(s.Pools)
			change(&s.Pools[i%max(1, len(s.Pools))])
		}
	}
	edits := []func(s *cluster.Snapshot, i int){
		func(*cluster.Snapshot, int) {},
		pools(func(p *cluster.Pool) { p.Taints = nil }),
		pools(func(p *cluster.Pool) { p.Requirements = requirements.Set{} }),
		pools(func(p *cluster.Pool) { p.Labels = map[string]string{"team": "blue"} }),
		pools(func(p *cluster.Pool) { p.Limited = nil }),
		pools(func(p *cluster.Pool) { p.Ready, p.Deleting, p.Static = true, false, false }),
		func(s *cluster.Snapshot, _ int) { s.Rules.RelaxMinValues = !s.Rules.RelaxMinValues },
		func(s *cluster.Snapshot, _ int) {
			s.Pods = slices.Clone(s.Pods)
			for i := range s.Pods {
				s.Pods[i].NodeSelector, s.Pods[i].Tolerations = nil, nil
			}
		},
	}
	for seed := range uint64(shortrun.Of(40, 4)) {
		w, err := scenario.Wild(seed)
		if err != nil {
			t.Fatal(err)
		}
		w.Snapshot.Rules.PackingIterations = cluster.NoIterations
		if w.Snapshot.Overlays = nil; len(w.Snapshot.Pools) == 0 {
			continue
		}
		whatIf := NewWhatIfEdited(w.Snapshot, w.Market)
		for i := range len(edits) + 1 {
			s := w.Snapshot
			edits[i%len(edits)](&s, i)
			want := PodsFrom(s, w.Market)
			got, _ := whatIf.PlanEdited(s, "")
			edited, placed = edited+1, placed+len(want.Existing)+len(want.Launches)
			for _, u := range want.Unplaced[:min(1, len(want.Unplaced))] {
				if _, could := whatIf.PlanEdited(s, u.Pod); !could {
					refused++
				}
			}
			for _, e := range want.Existing[:min(1, len(want.Existing))] {
				if _, could := whatIf.PlanEdited(s, e.Pod); !could {
					t.Errorf("seed %d, edit %d: nothing could take %s, which has a place", seed, i, e.Pod)
				}
			}
			got.LowerBoundUSD, got.Unplaced = want.LowerBoundUSD, want.Unplaced
			if diff := cmp.Diff(want.Lines(), got.Lines()); diff != "" {
				t.Fatalf("seed %d, edit %d (-anew +in stock):\n%s", seed, i, diff)
			}
		}
	}
	if placed < edited || refused == 0 {
		t.Errorf("%d edits, %d pods and nodes placed, %d refused: too little to test anything", edited, placed, refused)
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
	t.Parallel()
	launched, tight := 0, 0
	n := shortrun.Of(120, 24)
	for seed := range uint64(n) {
		w, err := scenario.Wild(seed)
		if err != nil {
			t.Fatal(err)
		}
		whatIf := newWhatIf(w.Snapshot, w.Market)
		worth := whatIf.PodPrices(w.Snapshot, nil)
		for part := range 4 {
			cost, sum := 0.0, 0.0
			for _, l := range whatIf.PlanPods(gone(w.Snapshot, part)).Launches {
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
	if launched < 4*n || tight < n/3-2 {
		t.Errorf("%d nodes, %d questions near the bound: too little to test anything", launched, tight)
	}
}

// A pod costs no more than its share of what a commitment covers, as long as the commitment has room.
func TestAPodCostsLessWhereACommitmentHasRoom(t *testing.T) {
	priceWith := func(lines ...string) float64 {
		w, err := scenario.FromText(append([]string{"type m5.large cpu=2000 mem=8192 milliusd=96", "pool default",
			"pods web cpu=1000 mem=100"}, lines...))
		if err != nil {
			t.Fatal(err)
		}
		usd, ok := newWhatIf(w.Snapshot, w.Market).MinPodPrice(w.Snapshot.Pods[0])
		if !ok {
			t.Fatalf("%q: no pool sells a node", lines)
		}
		return usd
	}
	if usd := priceWith(); usd != 0.048 {
		t.Errorf("half a node costs %v USD per hour, want 0.048", usd)
	}
	if usd := priceWith("commitment ri type=m5.large room=1"); usd > 0.001 {
		t.Errorf("half a node that is paid for costs %v USD per hour", usd)
	}
	used := []string{"commitment ri type=m5.large room=1", "node n1 type=m5.large zone=a pool=default"}
	if usd := priceWith(used...); usd != 0.048 {
		t.Errorf("half a node costs %v USD per hour where another node uses the commitment, want 0.048", usd)
	}
}

// Pods that spread have offerings in each zone, though those of one are cheaper.
func TestStockHasOfferingsInEachZone(t *testing.T) {
	w, err := scenario.FromText([]string{"type m5.large cpu=2000 mem=8192 milliusd=96",
		"overlay cheap change=-10%\nrequire topology.kubernetes.io/zone In a", "pool default",
		"pods web n=3 cpu=1500 mem=100\nspread zone skew=1 app=web"})
	if err != nil {
		t.Fatal(err)
	}
	p := newWhatIf(w.Snapshot, w.Market).PlanPods(w.Snapshot)
	zones := map[string]bool{}
	for _, l := range p.Launches {
		zones[l.Choice.Zone] = true
	}
	if len(zones) != 3 || len(p.Unplaced) > 0 {
		t.Errorf("want a node in each of three zones:\n%s", p)
	}
}
