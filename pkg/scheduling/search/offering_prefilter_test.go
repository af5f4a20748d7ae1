package search_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/search"
	"joiner.sh/pkg/testing/manypods"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

// tenants is a cluster of very many pools: n of one team each, which taints its nodes, n that are alike, and n that
// differ in a label nobody asks for. Of every tenth team a pod waits, and as many that do not care.
func tenants(b testing.TB, n int) cluster.Snapshot {
	s := manypods.Services(b, 0)
	base := s.Pools[0]
	s.Pools = nil
	for i := range n {
		team, alike, odd := base, base, base
		team.Name, alike.Name, odd.Name = fmt.Sprintf("team-%05d", i), fmt.Sprintf("alike-%05d", i), fmt.Sprintf("odd-%05d", i)
		team.Labels = map[string]string{"team": team.Name}
		team.Taints = []cluster.Taint{{Key: "team", Value: team.Name, Effect: "NoSchedule"}}
		team.Weight = 5
		odd.Labels = map[string]string{"odd": odd.Name}
		odd.Limited, odd.Limits = []string{string(api.LimitNodes)}, resources.List{}.With(string(api.LimitNodes), 3)
		s.Pools = append(s.Pools, team, alike, odd)
		p := cluster.Pod{
			Namespace: "default", Name: fmt.Sprintf("any-%05d", i), Phase: "Pending", Unscheduled: true,
			Need: resources.List{CPU: int64(100 + i%7*300), Memory: 512 * resources.MiB, Pods: 1},
		}
		s.Pods = append(s.Pods, p)
		if i%10 == 0 {
			p.Name, p.NodeSelector = "of-"+team.Name, map[string]string{"team": team.Name}
			p.Tolerations = []cluster.Toleration{{Key: "team", Operator: "Exists"}}
			s.Pods = append(s.Pods, p)
		}
	}
	return s
}

// A pass over very many pools is bounded, and the passes after it come to the pools that it left out.
func TestVeryManyPools(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	s := tenants(t, 350)
	types := instancetypes.ResolveTypes(s.Catalog, s.Classes[0], nil, s.Now)
	placed := map[string]bool{}
	for tick := 0; tick < 6 && len(placed) < 385; tick++ {
		if problem := packing.NewProblem(s, func(string) []instancetypes.Type { return types }); tick == 0 && (len(problem.Catalog.Offerings) < 250_000 || len(problem.Catalog.Offerings) > 300_000) {
			t.Errorf("%d offerings are looked at", len(problem.Catalog.Offerings))
		}
		p := solve(s, func(string) []instancetypes.Type { return types })
		for i, l := range p.Launches {
			for _, name := range l.Pods {
				if placed[name] {
					t.Fatalf("tick %d: %s is placed again", tick, name)
				}
				placed[name] = true
			}
			s.Claims = append(s.Claims, cluster.Claim{
				Name: fmt.Sprintf("claim-%d-%05d", tick, i), Pool: l.Pool, Class: l.Class, Labels: l.Labels, Annotations: l.Annotations,
				Requirements: l.Requirements, Requests: l.Requests, Taints: l.Taints, Capacity: l.Requests, Allocatable: l.Requests,
			})
		}
		if tick == 0 && len(p.Unplaced) == 0 {
			t.Error("one tick is enough, which tests nothing")
		}
		if len(p.Unplaced) > 0 && !strings.Contains(strings.Join(p.Unplaced[0].Why, "\n"), "a later one will look at this one") {
			t.Errorf("tick %d: %s", tick, p.Unplaced[0].Why)
		}
		s.Now = s.Now.Add(1e9 * 60)
	}
	if len(placed) != 385 {
		t.Errorf("after 6 ticks %d of 385 pods have a place", len(placed))
	}
}

// Pools that are few, and together sell more than a pass looks at, are looked at for the pods that wait: the pod of the
// last team gets its node.
func TestFewPoolsThatSellVeryMuch(t *testing.T) {
	s := tenants(t, 99)
	s.Pools = slices.DeleteFunc(s.Pools, func(p cluster.Pool) bool { return p.Labels["team"] == "" })
	s.Pods = slices.DeleteFunc(s.Pods, func(p cluster.Pod) bool { return p.NodeSelector == nil })
	types := instancetypes.ResolveTypes(s.Catalog, s.Classes[0], nil, s.Now)
	p := solve(s, func(string) []instancetypes.Type { return types })
	if len(s.Pools) != 99 || len(s.Pods) != 10 || len(p.Unplaced) > 0 {
		t.Errorf("with %d pools %d of %d pods are unplaced: %v", len(s.Pools), len(p.Unplaced), len(s.Pods), p.Unplaced)
	}
}

// Leaving out pools that no pod may use, or that are like others, changes nothing about what pods get.
func TestPoolsLeftOutAreNotMissed(t *testing.T) {
	for seed := range uint64(60) {
		w, err := scenario.Random(seed)
		if err != nil {
			t.Fatal(err)
		}
		few := len(w.Snapshot.Pools)
		for _, p := range slices.Clone(w.Snapshot.Pools[:few]) {
			for i := range 3 {
				p.Name = fmt.Sprintf("a-%s-%d", p.Name, i) // comes after what it is like
				w.Snapshot.Pools = append(w.Snapshot.Pools, p)
			}
		}
		upTo := func(few int) plan.Plan {
			p := packing.NewSharedDemand(w.Snapshot)
			p.ResolveOfferings(w.Market, few)
			p.AddClusterState()
			return search.SolveProblem(p)
		}
		want, got := upTo(1000), upTo(0)
		for _, fault := range w.Check(got) {
			t.Errorf("seed %d: %s", seed, fault)
		}
		if len(got.Unplaced) != len(want.Unplaced) || len(got.Existing) != len(want.Existing) || got.TotalPrice() > want.TotalPrice()*1.1 {
			t.Errorf("seed %d: with pools left out\n%s\nwith all\n%s", seed, got, want)
		}
	}
}

// A pod that no pool takes is told so in a few lines, whatever the number of pools.
func TestReasonsOfManyPools(t *testing.T) {
	s := tenants(t, 200)
	s.Pods = append(s.Pods[:0], cluster.Pod{
		Namespace: "default", Name: "lost", Phase: "Pending", Unscheduled: true, NodeSelector: map[string]string{"team": "nobody"},
		Need: resources.List{CPU: 100, Memory: resources.MiB, Pods: 1},
	})
	s.Pools = append(s.Pools, cluster.Pool{Name: "shut", Class: "default", Requirements: requirements.NewSet()})
	types := instancetypes.ResolveTypes(s.Catalog, s.Classes[0], nil, s.Now)
	p := solve(s, func(string) []instancetypes.Type { return types })
	if len(p.Unplaced) != 1 || len(p.Unplaced[0].Why) > 40+2 {
		t.Fatalf("unplaced: %v", p.Unplaced)
	}
	text := p.Unplaced[0].Message()
	for _, want := range []string{
		"pool team-00199: taint team=team-00199:NoSchedule is not tolerated and requires team in (team-00199), pod wants team in (nobody); ",
		"561 more pools have nothing for the pod either",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
}

func benchmarkPools(b *testing.B, n int) {
	s := tenants(b, n)
	types := instancetypes.ResolveTypes(s.Catalog, s.Classes[0], nil, s.Now)
	b.ReportAllocs()
	for b.Loop() {
		if p := solve(s, func(string) []instancetypes.Type { return types }); len(p.Launches) == 0 {
			b.Fatal("nothing is launched")
		}
	}
}

func BenchmarkPools300(b *testing.B)   { benchmarkPools(b, 100) }
func BenchmarkPools3000(b *testing.B)  { benchmarkPools(b, 1000) }
func BenchmarkPools10000(b *testing.B) { benchmarkPools(b, 3333) }
