package binpack

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

// worlds is how many random worlds are played, and firstWorld the seed of the first.
func worlds() (n int, first uint64) { return worldFlags.n.N(), *worldFlags.first }

var worldFlags = struct {
	n     *shortrun.Count
	first *uint64
}{shortrun.NewCount("worlds", 200, 20, "random worlds to play"), flag.Uint64("first-world", 0, "seed of the first random world")}

// inWorlds plays the property in every world, on all cores. A fault comes with the world as text, to be pasted into a
// scenario file.
func inWorlds(t *testing.T, property func(w *scenario.World) []string) {
	n, first := worlds()
	wildWorlds := randomWorlds{scenario.Wild, scenario.WildText, n, first}
	wildWorlds.check(t, property)
}

// randomWorlds are n worlds of one sort, from a seed on.
type randomWorlds struct {
	make  func(seed uint64) (*scenario.World, error)
	text  func(seed uint64) []string
	n     int
	first uint64
}

// check plays the property in each of the worlds.
func (x randomWorlds) check(t *testing.T, property func(w *scenario.World) []string) {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	var shown atomic.Int32
	for i := range x.n {
		g.Go(func() error {
			seed := x.first + uint64(i)
			w, err := x.make(seed)
			if err != nil || shown.Load() > 40 {
				return err
			}
			bad := property(w)
			if len(bad) == 0 {
				return nil
			}
			shown.Add(1)
			t.Errorf("world %d: %s", seed, strings.Join(bad[:min(3, len(bad))], "\n  "))
			if testing.Verbose() {
				t.Logf("%s\n\n%s", strings.Join(x.text(seed), "\n----\nok\n\n"), decide(w))
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// Whatever the cluster looks like: the plan keeps every rule that the judge knows, costs no less than its bound, does
// not depend on the order of its input, is complete once its claims are on their way, and leaves the snapshot as it
// was.
func TestWildWorlds(t *testing.T) {
	var placed, covered atomic.Int64
	inWorlds(t, func(w *scenario.World) []string {
		before := stored(t, w)
		p := decide(w)
		placed.Add(int64(len(p.Existing) + len(p.Launches)))
		for _, l := range p.Launches {
			covered.Add(int64(len(l.Choice.Paid)))
		}
		bad := w.Faults(p, decide)
		nodes := len(w.Snapshot.Nodes)
		for i := 0; i < nodes; i += max(1, nodes/3) {
			decide(nodeGone(w, i))
		}
		if stored(t, w) != before {
			bad = append(bad, "the snapshot, or what is sold, is another after packing")
		}
		if again := decide(w); again.String() != p.String() || again.LowerBoundUSD != p.LowerBoundUSD {
			bad = append(bad, "packed again the plan is another")
		}
		return bad
	})
	if n, _ := worlds(); int(placed.Load()) < n || int(covered.Load()) < n/20 {
		t.Errorf("%d placements, and %d launches that commitments cover, in %d worlds test nothing",
			placed.Load(), covered.Load(), n)
	}
}

// nodeGone is the world if node i were gone and its pods waited.
func nodeGone(w *scenario.World, i int) *scenario.World {
	out := *w
	s := &out.Snapshot
	gone := s.Nodes[i]
	s.Nodes = slices.Concat(s.Nodes[:i:i], s.Nodes[i+1:])
	s.Claims = slices.DeleteFunc(slices.Clone(s.Claims), func(c cluster.Claim) bool { return c.NodeName == gone.Name })
	s.Pods = slices.Clone(s.Pods)
	for j := range s.Pods {
		if p := &s.Pods[j]; p.NodeName == gone.Name {
			p.NodeName, p.Phase, p.Unscheduled = "", "Pending", true
		}
	}
	return &out
}

func stored(t *testing.T, w *scenario.World) string {
	b, err := json.Marshal([]any{w.Snapshot, w.Types})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The search may end up so much dearer because there is more to choose from: a part of the price, and, of a small
// fleet, a node.
const (
	tolerance = 0.15
	aNode     = 0.055 // USD per hour
)

// Whoever offers more makes nothing dearer: with one type more, at a price nobody else has, the same pods cost no more,
// but for what the search may miss.
func TestMoreOfferingsCostNoMore(t *testing.T) {
	var mu sync.Mutex
	compared, cheaper, before, after := 0, 0, 0.0, 0.0
	inWorlds(t, func(w *scenario.World) []string {
		p := decide(w)
		if len(p.Launches) == 0 {
			return nil
		}
		more := *w
		more.Types = slices.Concat(w.Types, []instancetypes.Type{offered(w.Types[1], "x.m", aNode)})
		q := decide(&more)
		if !slices.Equal(homeless(p), homeless(q)) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		compared++
		if q.TotalPrice() < p.TotalPrice() {
			cheaper++
		}
		before, after = before+p.TotalPrice(), after+q.TotalPrice()
		if q.TotalPrice() > p.TotalPrice()*(1+tolerance)+aNode {
			return []string{fmt.Sprintf("%.4f USD/h, with one more type %.4f\n%s", p.TotalPrice(), q.TotalPrice(), q)}
		}
		return nil
	})
	if n, _ := worlds(); compared < n/3 || cheaper == 0 || after > before {
		t.Errorf("%d of %d worlds compared, %d cheaper, %.3f USD/h before and %.3f after", compared, n, cheaper, before, after)
	}
}

// offered is the type under another name and price, on-demand and spot alike.
func offered(t instancetypes.Type, name string, usd float64) instancetypes.Type {
	t.Requirements = t.Requirements.Without(instancetypes.LabelType).And(requirements.Of(instancetypes.LabelType, name))
	t.Name, t.Offerings = name, slices.Clone(t.Offerings)
	for i := range t.Offerings {
		t.Offerings[i].Type, t.Offerings[i].Price, t.Offerings[i].Available = name, usd, true
	}
	return t
}

func homeless(p plan.Plan) []string {
	all := map[string]bool{}
	for _, u := range p.Unplaced {
		all[u.Pod] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// A pod that waits alone and finds a place finds one too when it has a rule about pods like itself, over whatever every
// node has: there are no others that the rule could keep it from.
func TestRulesAboutItselfLeaveALonePodItsPlace(t *testing.T) {
	var compared, booked atomic.Int64
	inWorlds(t, func(w *scenario.World) []string {
		var bad []string
		asked := 0
		for i, p := range slices.Backward(w.Snapshot.Pods) {
			if asked == 2 || !p.Provisionable() || i > 0 && w.Snapshot.Pods[i-1].Labels["app"] == p.Labels["app"] {
				continue
			}
			p.Spread, p.Affinity, p.AntiAffinity, p.Prefers, p.Avoids = nil, nil, nil, nil, nil
			p.Labels = map[string]string{"app": "alone"}
			before := decide(alone(w, p))
			if len(before.Unplaced) > 0 || len(before.Launches) == 1 && flexiblePool(w, before.Launches[0].Pool) {
				continue
			}
			compared.Add(1)
			asked++
			if len(before.Launches) == 1 && before.Launches[0].Choice.Reservation != nil {
				booked.Add(1)
			}
			mine := &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", "alone")}}
			for _, key := range labelsOf(w, before) {
				for what, with := range map[string]func(*cluster.Pod){
					"spread": func(p *cluster.Pod) { p.Spread = []cluster.Spread{{Key: key, MaxSkew: 1, Selector: mine}} },
					"apart":  func(p *cluster.Pod) { p.AntiAffinity = []cluster.AffinityTerm{{Key: key, Selector: mine}} },
					"near":   func(p *cluster.Pod) { p.Affinity = []cluster.AffinityTerm{{Key: key, Selector: mine}} },
				} {
					q := p
					with(&q)
					if after := decide(alone(w, q)); len(after.Unplaced) > 0 {
						bad = append(bad, fmt.Sprintf("%s with a rule %s over %s: %s", p.Name, what, key, after.Unplaced[0].Message()))
					}
				}
			}
		}
		return bad
	})
	if n, _ := worlds(); int(compared.Load()) < n || int(booked.Load()) < n/20 {
		t.Errorf("%d pods compared, %d of them in reserved capacity, in %d worlds", compared.Load(), booked.Load(), n)
	}
}

// alone is the world with one pod that needs a place.
func alone(w *scenario.World, p cluster.Pod) *scenario.World {
	out := *w
	going := map[string]bool{}
	for _, node := range w.Snapshot.StateNodes() {
		going[node.Name()] = node.MarkedForDeletion()
	}
	out.Snapshot.Pods = slices.DeleteFunc(slices.Clone(w.Snapshot.Pods), func(o cluster.Pod) bool { return o.Provisionable() || going[o.NodeName] })
	out.Snapshot.Pods = append(out.Snapshot.Pods, p)
	return &out
}

// flexiblePool reports whether nodes of the pool have to be flexible, which rules may leave none that is.
func flexiblePool(w *scenario.World, name string) bool {
	p, _ := w.Snapshot.PoolOf(name)
	return slices.ContainsFunc(p.Requirements.All(), func(r requirements.Requirement) bool { return r.MinValues > 0 })
}

// labelsOf are the labels over which rules may be that the node has on which the plan puts its only pod.
func labelsOf(w *scenario.World, p plan.Plan) []string {
	keys := []string{instancetypes.LabelZone, instancetypes.LabelCapacityType, instancetypes.LabelType, instancetypes.LabelArch, podclass.LabelHost}
	if len(p.Launches) == 0 {
		for _, node := range w.Snapshot.StateNodes() {
			if node.Name() == p.Existing[0].Node {
				return slices.DeleteFunc(keys, func(key string) bool { return key != podclass.LabelHost && node.Labels()[key] == "" })
			}
		}
	}
	for _, key := range []string{instancetypes.LabelTenancy, instancetypes.LabelPartition} {
		if r, ok := w.Types[0].Requirements.Get(key); ok && len(r.Values) > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}
