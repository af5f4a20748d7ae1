package binpack

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/scenario"
)

// Whatever stands in a snapshot, packing ends, without a panic; every pod that waits is placed or has a reason; and
// what asks for a negative amount or for more than there is gets no node.
func TestAbsurdWorlds(t *testing.T) {
	t.Parallel()
	n, first := worlds()
	for i := range n {
		seed := first + uint64(i)
		w, err := scenario.Wild(seed)
		if err != nil {
			t.Fatal(err)
		}
		homeless := spoil(w, rand.New(rand.NewPCG(seed, 13)))
		p := decide(w)
		if bad := unaccounted(w, p, homeless); len(bad) > 0 {
			t.Errorf("world %d: %s", seed, bad[0])
		}
	}
}

// spoil makes nonsense of parts of the world and returns the pods that can have no place.
func spoil(w *scenario.World, r *rand.Rand) map[string]bool {
	s := &w.Snapshot
	s.Pods, s.Pools, s.Nodes, w.Types = slices.Clone(s.Pods), slices.Clone(s.Pools), slices.Clone(s.Nodes), slices.Clone(w.Types)
	homeless := map[string]bool{}
	for i := range s.Pods {
		p := &s.Pods[i]
		waits := p.Provisionable()
		switch r.IntN(24) {
		case 0:
			p.Need = resources.List{CPU: -1, Pods: 1}
			homeless[p.Key()] = waits
		case 1:
			p.Need = resources.List{CPU: math.MaxInt64, Memory: math.MaxInt64, Pods: 1}
			homeless[p.Key()] = waits
		case 2:
			p.Need = p.Need.With("nowhere.example/thing", math.MaxInt64)
			homeless[p.Key()] = waits
		case 3:
			p.Spread = append(slices.Clone(p.Spread), cluster.Spread{Key: "", MaxSkew: int32(r.IntN(3)) - 1, MinDomains: -5})
		case 4:
			p.AntiAffinity = append(slices.Clone(p.AntiAffinity), cluster.AffinityTerm{Key: ""}, cluster.AffinityTerm{Key: instancetypes.LabelZone, Selector: &cluster.Selector{}})
		case 5:
			p.Tolerations = []cluster.Toleration{{Operator: "Perhaps"}}
		case 6:
			p.Priority = math.MinInt32
		}
	}
	for i := range w.Types {
		w.Types[i].Offerings = slices.Clone(w.Types[i].Offerings)
		switch r.IntN(12) {
		case 0:
			w.Types[i].Allocatable = resources.List{}
		case 1:
			w.Types[i].Offerings[0].Price = 0
		case 2:
			w.Types[i].Offerings[0].Price = -3
		case 3:
			w.Types[i].Offerings[0].Price = math.Inf(1)
		case 4:
			w.Types[i].Offerings = nil
		case 5:
			w.Types[i].Allocatable.CPU = -100
		}
	}
	switch r.IntN(8) {
	case 0:
		w.Types = nil
	case 1:
		s.Pools = nil
	case 2:
		s.Classes = nil
	case 3:
		s.Nodes = append(s.Nodes, s.Nodes...)
	case 4:
		s.Pools[0].Limits, s.Pools[0].Limited = resources.List{CPU: -5}, []string{"cpu", "nodes", "", "memory"}
	case 5:
		for i := range s.Nodes {
			s.Nodes[i].Allocatable = resources.List{CPU: -1, Memory: math.MaxInt64}
		}
	}
	return homeless
}

func unaccounted(w *scenario.World, p plan.Plan, homeless map[string]bool) []string {
	places := map[string]int{}
	for _, l := range p.Launches {
		for _, k := range l.Pods {
			places[k]++
			if homeless[k] {
				return []string{fmt.Sprintf("%s asks for what cannot be, and gets %s", k, l)}
			}
		}
	}
	for _, e := range p.Existing {
		places[e.Pod]++
	}
	for _, u := range p.Unplaced {
		if places[u.Pod]++; len(u.Why) == 0 {
			return []string{u.Pod + " has no place and no reason"}
		}
	}
	var out []string
	for _, pod := range w.Snapshot.Pods {
		if pod.Provisionable() && places[pod.Key()] != 1 {
			out = append(out, fmt.Sprintf("%s has %d places", pod.Key(), places[pod.Key()]))
		}
	}
	return out
}
