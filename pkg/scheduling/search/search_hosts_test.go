package search

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/prices"
	"joiner.sh/pkg/testing/manypods"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

// Room on a node that is there goes to the pods that would cost most elsewhere: pods that want on-demand have the
// on-demand node, though those that do not mind are larger and come first.
func TestExistingRoomIsForThoseWhoWouldCostMostElsewhere(t *testing.T) {
	w := scenario.Scripted(t, "type m.l cpu=4000 mem=8192 milliusd=400 spot=300", "pool p", "node n0 type=m.l zone=a pool=p",
		"pods any n=4 cpu=1100 mem=2200", "pods own n=4 cpu=1000 mem=2000\nselect capacity=on-demand")
	p := solveWorld(w)
	for _, e := range p.Existing {
		if strings.HasPrefix(e.Pod, "default/any") {
			t.Errorf("%s took room from pods that want on-demand", e.Pod)
		}
	}
	if len(p.Existing) != 4 || p.TotalPrice() > 0.605 {
		t.Errorf("%d pods on the node that is there, %.3f USD/h:\n%s", len(p.Existing), p.TotalPrice(), p)
	}
}

// The search gives room of nodes that are there back and takes it, and all that is counted is what a solution made of
// its outcome would count.
func TestSearchMovesPodsBetweenNewNodesAndOthers(t *testing.T) {
	t.Parallel()
	moved := 0
	n := shortrun.Of(240, 80)
	for seed := range uint64(n) {
		world, err := scenario.Wild(seed)
		if err != nil {
			t.Fatal(err)
		}
		p := packing.NewProblem(world.Snapshot, world.Market)
		s, st := placeMostPods(p)
		before := podsOnHosts(s)
		tally, total := s.Tally.Clone(), slices.Clone(s.Total)
		st.guide = st.pricing.GuidePricesFor(s)
		improveByLocalSearch(s, st, searchLimit{steps: 300})
		if after := podsOnHosts(s); !slices.Equal(before, after) {
			moved++
		}
		for i := range tally.Count {
			if !slices.Equal(tally.Count[i], s.Tally.Count[i]) {
				t.Errorf("seed %d: counter %d counts other pods by domain", seed, i)
			}
		}
		if !slices.Equal(total, s.Total) {
			t.Errorf("seed %d: other pods are counted by hostname", seed)
		}
		for i, b := range s.Bins {
			checkBin(t, seed, p, i, b)
		}
	}
	if moved < n/80 {
		t.Errorf("pods moved on or off nodes that are there in %d worlds, which tests nothing", moved)
	}
}

// The order in which pods and nodes are listed changes nothing about the plan, where room on nodes that are there is
// given by price and given back.
func TestOrderOfInputDoesNotMatterBesideHalfEmptyNodes(t *testing.T) {
	t.Parallel()
	s := manypods.PartlyFree(t, 200, 24)
	s.Rules.PackingMilliseconds = 128
	types := instancetypes.ResolveTypes(s.Catalog, s.Classes[0], nil, s.Now)
	pack := func(s cluster.Snapshot) plan.Plan {
		return SolveProblem(packing.NewProblem(s, func(string) []instancetypes.Type { return types }))
	}
	want := pack(s)
	without := s
	without.Rules.PackingIterations = cluster.NoIterations
	if want.TotalPrice() >= pack(without).TotalPrice() {
		t.Errorf("%.4f USD/h with a search, which saves nothing and tests nothing", want.TotalPrice())
	}
	for seed := range uint64(shortrun.Of(100, 10)) {
		w := (&scenario.World{Snapshot: s}).Shuffled(seed)
		if diff := cmp.Diff(want.Lines(), pack(w.Snapshot).Lines()); diff != "" {
			t.Fatalf("shuffled with seed %d (-plain +shuffled):\n%s", seed, diff)
		}
	}
}

// checkBin tells where a bin has not the room and the counts that its pods leave it.
func checkBin(t *testing.T, seed uint64, p *packing.Problem, i int, b *capacity.Bin) {
	if b.Offering != nil {
		return
	}
	fresh := p.Nodes.Hosts[i].Clone()
	fresh.Load = nil
	s := p.NewSolution(plainStrategy(p, prices.NewPricing(p)).Strategy)
	for _, l := range b.Load {
		s.AddToBin(l, fresh)
	}
	if !slices.Equal(fresh.Room, b.Room) || !slices.Equal(fresh.Count, b.Count) || !slices.Equal(fresh.Anti, b.Anti) {
		t.Errorf("seed %d: %s has room %v and counts %v, its pods leave %v and %v", seed, b.Name, b.Room, b.Count, fresh.Room, fresh.Count)
	}
	if slices.ContainsFunc(b.Room, func(x int64) bool { return x < 0 }) {
		t.Errorf("seed %d: %s has less than no room: %v", seed, b.Name, b.Room)
	}
}

func podsOnHosts(s *packing.Solution) []string {
	var out []string
	for _, b := range s.Bins {
		if b.Offering == nil {
			for _, l := range b.Load {
				for _, p := range l.Pods {
					out = append(out, p+" on "+b.Name)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}
