package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

// The obligation of the proof, in clusters small enough to try every plan: with nodes that have room, weights, limits,
// overlays, daemons, and pods that choose zones or keep apart, no way to place the pods that the plan places costs less
// than its bound.
func TestBoundNeverExceedsTheBestPlan(t *testing.T) {
	asked, tight, roomy := 0, 0, 0
	n := shortrun.Of(600, 100)
	for seed := range uint64(n) {
		w, err := scenario.FromText(tinyWorld(seed))
		if err != nil {
			t.Fatal(err)
		}
		p := solveWorld(w)
		if len(p.Launches) == 0 {
			continue
		}
		asked++
		best := newTrial(w, p.Unplaced).cheapest()
		if p.LowerBoundUSD > best*(1+1e-9) {
			t.Errorf("seed %d: bound %v, but a plan costs %v", seed, p.LowerBoundUSD, best)
		}
		if p.TotalPrice() < best*(1-1e-9) {
			t.Errorf("seed %d: the plan costs %v, so that all plans were not tried: %v", seed, p.TotalPrice(), best)
		}
		if p.LowerBoundUSD > 0.8*best {
			tight++
		}
		if len(w.Snapshot.Nodes) > 0 && p.LowerBoundUSD > 0 {
			roomy++
		}
	}
	if asked < n*2/3 || tight < asked/5 || roomy < n/6 {
		t.Errorf("of %d plans %d have a bound near the best, and %d a bound beside room that there is, which is too few to test anything", asked, tight, roomy)
	}
}

// One small pod needs a whole node, so the bound is the price of the cheapest that holds it; where a host could take
// it, nothing has to be made for it.
func TestBoundOfOnePod(t *testing.T) {
	for _, c := range []struct {
		name   string
		script []string
		want   float64
	}{
		{"alone", []string{"type c.m cpu=4000 mem=8192 milliusd=120 spot=62", "type c.l cpu=16000 mem=32768 milliusd=500 spot=200", "pool p", "pods web cpu=100 mem=128"}, 0.062},
		{"on-demand", []string{"type c.m cpu=4000 mem=8192 milliusd=120 spot=62", "pool p", "pods web cpu=100 mem=128\nselect capacity=on-demand"}, 0.12},
		{"the larger of two", []string{"type c.m cpu=4000 mem=8192 milliusd=120", "type c.l cpu=16000 mem=32768 milliusd=500", "pool p", "pods web cpu=100 mem=128", "pods big cpu=9000 mem=128"}, 0.5},
	} {
		w, err := scenario.FromText(c.script)
		if err != nil {
			t.Fatal(err)
		}
		if got := solveWorld(w).LowerBoundUSD; math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: the bound is %v, not %v", c.name, got, c.want)
		}
	}
}

// tinyWorld has up to six pods and few types.
func tinyWorld(seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 11))
	script := []string{
		fmt.Sprintf("type c.s cpu=2000 mem=4096 milliusd=80 spot=%d", 20+r.IntN(30)), fmt.Sprintf("type c.m cpu=4000 mem=8192 milliusd=%d spot=62", 120+r.IntN(60)),
		"type r.m cpu=4000 mem=32768 milliusd=250", fmt.Sprintf("type c.l cpu=16000 mem=32768 milliusd=600 spot=%d", 120+r.IntN(160)),
	}
	for i := range 1 + r.IntN(2) {
		s := fmt.Sprintf("pool p%d weight=%d", i, r.IntN(2))
		for _, line := range []string{"require capacity In spot", "require capacity In on-demand", "limit cpu 10000", "limit nodes 2", "require zone In a b"} {
			if r.IntN(5) == 0 {
				s += "\n" + line
			}
		}
		script = append(script, s)
	}
	if r.IntN(3) == 0 {
		script = append(script, "overlay cheap change=-40%\nrequire type In c.m")
	}
	for i := range r.IntN(3) {
		script = append(script, fmt.Sprintf("node n%d type=c.m zone=a pool=p0", i))
		if r.IntN(2) == 0 {
			script = append(script, fmt.Sprintf("pods old%d cpu=%d mem=1024 on=n%d", i, 500*(1+r.IntN(6)), i))
		}
	}
	if r.IntN(3) == 0 {
		script = append(script, "daemon agent cpu=200 mem=256\ntolerate all")
	}
	for i, left := 0, 6; i < 3 && left > 0; i++ {
		n := 1 + r.IntN(min(3, left))
		left -= n
		s := fmt.Sprintf("pods app%d n=%d cpu=%d mem=%d", i, n, 300*(1+r.IntN(11)), 512*(1+r.IntN(14)))
		switch r.IntN(6) {
		case 0:
			s += "\nselect zone=b"
		case 1:
			s += "\nselect capacity=on-demand"
		case 2:
			s += fmt.Sprintf("\napart host app=app%d", i)
		}
		script = append(script, s)
	}
	return script
}

// trial goes through every way to place pods, knowing nothing of how the packer does it.
type trial struct {
	pods   []cluster.Pod
	nodes  []trialNode // first those that are there, then new ones
	sold   []trialOffering
	daemon resources.List
	best   float64
}

type trialNode struct {
	labels map[string]string // of a node that is there, nil for a new one
	room   resources.List
	pods   []cluster.Pod
}

type trialOffering struct {
	labels map[string]string
	room   resources.List
	price  float64
}

func newTrial(w *scenario.World, homeless []plan.Unplaced) *trial {
	t := &trial{best: math.Inf(1)}
	for _, d := range w.Snapshot.Daemons {
		t.daemon = t.daemon.Add(d.Need)
	}
	out := map[string]bool{}
	for _, u := range homeless {
		out[u.Pod] = true
	}
	for _, p := range w.Snapshot.Pods {
		if p.NodeName == "" && !out[p.Key()] {
			t.pods = append(t.pods, p)
		}
	}
	for _, n := range w.Snapshot.Nodes {
		left := n.Allocatable.Sub(t.daemon)
		for _, p := range w.Snapshot.Pods {
			if p.NodeName == n.Name {
				left = left.Sub(p.Need)
			}
		}
		t.nodes = append(t.nodes, trialNode{labels: n.Labels, room: left})
	}
	market := overlays.ByPool(w.Snapshot, w.Market)
	for _, pool := range w.Snapshot.Pools {
		for _, typ := range market(pool) {
			for _, o := range typ.Offerings {
				if o.Available && pool.Requirements.Has(instancetypes.LabelZone, o.Zone) && pool.Requirements.Has(instancetypes.LabelCapacityType, o.CapacityType) {
					labels := map[string]string{instancetypes.LabelZone: o.Zone, instancetypes.LabelCapacityType: o.CapacityType}
					t.sold = append(t.sold, trialOffering{labels, typ.Allocatable.Sub(t.daemon), o.Price})
				}
			}
		}
	}
	return t
}

// cheapest is the lowest price of new nodes that give a place to all pods.
func (t *trial) cheapest() float64 {
	t.place(0, 0)
	return t.best
}

// place tries every place for the pod and all after it. New nodes are alike until something is on them, so only the
// first empty one is tried.
func (t *trial) place(i int, price float64) {
	if price >= t.best {
		return
	}
	if i == len(t.pods) {
		t.best = price
		return
	}
	for j := range t.nodes {
		before := t.nodes[j]
		was := t.cost(before)
		t.nodes[j].pods = slices.Concat(before.pods, t.pods[i:i+1])
		if now := t.cost(t.nodes[j]); !math.IsInf(now, 1) {
			t.place(i+1, price-was+now)
		}
		t.nodes[j] = before
	}
	t.nodes = append(t.nodes, trialNode{pods: []cluster.Pod{t.pods[i]}})
	if now := t.cost(t.nodes[len(t.nodes)-1]); !math.IsInf(now, 1) {
		t.place(i+1, price+now)
	}
	t.nodes = t.nodes[:len(t.nodes)-1]
}

// cost is the price of the cheapest node that may hold the pods, 0 for one that is there, infinite when there is none.
func (t *trial) cost(n trialNode) float64 {
	var need resources.List
	for i, p := range n.pods {
		need = need.Add(p.Need)
		for _, o := range n.pods[:i] {
			if len(p.AntiAffinity) > 0 && p.Labels["app"] == o.Labels["app"] {
				return math.Inf(1)
			}
		}
	}
	suits := func(labels map[string]string) bool {
		for _, p := range n.pods {
			for k, v := range p.NodeSelector {
				if labels[k] != v {
					return false
				}
			}
		}
		return true
	}
	if n.labels != nil {
		if len(n.pods) == 0 || need.FitsIn(n.room) && suits(n.labels) {
			return 0
		}
		return math.Inf(1)
	}
	best := math.Inf(1)
	for _, o := range t.sold {
		if need.FitsIn(o.room) && suits(o.labels) {
			best = min(best, o.price)
		}
	}
	return best
}
