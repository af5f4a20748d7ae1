package disruption

import (
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption/simulator"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

// grown is a random world whose pods run, on nodes that were launched for them, after every third of its pods has
// ended.
func grown(t *testing.T, seed uint64) *world {
	t.Helper()
	random, err := scenario.Random(seed)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	*w.World = *random
	for range 3 {
		*w.World = *w.Launched(binpack.PodsFrom(w.Snapshot, w.Market))
		for i := range w.Snapshot.Claims {
			c := &w.Snapshot.Claims[i]
			c.Annotations, c.Deleting = nil, time.Time{}
		}
		w.initialize()
		w.settle()
	}
	for i := range w.Snapshot.Pools {
		w.Snapshot.Pools[i].Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "2"}}}
	}
	for i := range w.Snapshot.Nodes { // what was on its way in or out has arrived
		n := &w.Snapshot.Nodes[i]
		n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t cluster.Taint) bool {
			return t.Key == v1.TaintDisrupted || t.Key == "node.kubernetes.io/not-ready"
		})
		n.Labels = maps.Clone(n.Labels)
		n.Labels[v1.LabelInitialized] = "true"
	}
	n := 0
	w.Snapshot.Pods = slices.DeleteFunc(w.Snapshot.Pods, func(p cluster.Pod) bool {
		n++
		return n%3 == 0 || p.NodeName == "" || p.Terminating()
	})
	return w
}

var (
	worlds     = shortrun.NewCount("worlds", 120, 10, "how many random worlds are tried")
	firstWorld = flag.Uint64("first-world", 0, "the seed of the first")
)

// Whatever the cluster looks like, and in whatever order pods come to the scheduler: a disruption never makes it
// dearer, leaves every pod that ran a place, keeps to the budgets, is not taken back when nothing else happens, does
// not depend on the order of what it is shown, and comes to rest.
func TestRandomWorlds(t *testing.T) {
	seeds := []uint64{681, 721, 877, 1079, 1091, 7054, 11244} // that found faults
	for i := range worlds.N() {
		seeds = append(seeds, *firstWorld+uint64(i))
	}
	var sum outcome
	for _, seed := range seeds {
		w := grown(t, seed)
		w.schedule = func() { w.emptiestFirst(seed) }
		if seed%2 == 1 {
			w.hold()
		}
		before, running := w.price(), w.homed()
		sum.add(w.toRest(t, seed))
		if homed := w.homed(); homed < running {
			t.Errorf("seed %d: %d of %d pods lost their place", seed, running-homed, running)
		}
		after := w.price()
		if after > before+1e-9 {
			t.Errorf("seed %d: dearer, %.4f after %.4f", seed, after, before)
		}
		sum.saved += before - after
	}
	t.Logf("%+v", sum)
	if sum.launched > sum.ended/100 {
		t.Errorf("after %d of %d commands pods had no room where it was said to be", sum.launched, sum.ended)
	}
	if n := len(seeds); sum.saved < 0.08*float64(n) || sum.moved < n*4/5 || sum.ended < n*4/5 {
		t.Errorf("too little happened to test anything: %+v", sum)
	}
}

// outcome is what came of disruption.
type outcome struct {
	saved                  float64 // USD per hour
	moved, ended, launched int     // pods, commands, nodes besides
}

func (o *outcome) add(x outcome) {
	o.moved, o.ended, o.launched = o.moved+x.moved, o.ended+x.ended, o.launched+x.launched
}

// toRest disrupts until there is nothing to do any more.
func (w *world) toRest(t *testing.T, seed uint64) (o outcome) {
	t.Helper()
	quiet := 0
	for pass := 0; quiet < 3; pass++ {
		if pass == 300 {
			t.Errorf("seed %d: it goes on and on", seed)
			break
		}
		shuffled := *w
		shuffled.World = w.Shuffled(seed)
		other, _ := Next(shuffled.Snapshot, w.memory, w.Market)
		p := w.next()
		if diff := cmp.Diff(p.Lines(), other.Lines()); diff != "" {
			t.Fatalf("seed %d: shuffled (-plain +shuffled):\n%s", seed, diff)
		}
		for _, c := range p.Begin {
			o.moved += c.Moves
		}
		for _, e := range p.RollBack {
			t.Errorf("seed %d: %s is taken back: %s", seed, strings.Join(e.Claims, ","), e.Why)
		}
		w.act(p)
		o.ended += len(p.Finish)
		w.judge(t, seed)
		w.initialize()
		o.launched += w.provision()
		w.open()
		w.Snapshot.Now = w.Snapshot.Now.Add(20 * time.Second)
		quiet++
		if len(p.Begin)+len(p.Finish)+len(p.RollBack)+len(p.Proposed)+len(p.Waiting) > 0 {
			quiet = 0
		}
	}
	return o
}

// homed counts the pods that have a node.
func (w *world) homed() (n int) {
	for _, p := range w.Snapshot.Pods {
		if p.NodeName != "" {
			n++
		}
	}
	return n
}

// emptiestFirst gives pods that wait the emptiest node, in any order, as the scheduler does. Those that it finds none
// for, and those about which more decides, run where the packer puts them.
func (w *world) emptiestFirst(seed uint64) {
	b := simulator.New(w.Snapshot, nil)
	for _, node := range w.Snapshot.StateNodes() {
		if n := b.Node(node.Name()); n != nil {
			n.SetHeld(node.AwaitsNominated())
		}
	}
	var waiting []*cluster.Pod
	for i := range w.Snapshot.Pods {
		if p := &w.Snapshot.Pods[i]; p.NodeName == "" {
			waiting = append(waiting, p)
		}
	}
	random := rand.New(rand.NewPCG(seed, uint64(w.Snapshot.Now.Unix())))
	random.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
	for _, p := range waiting {
		if len(b.Bind([]*cluster.Pod{p}, nil)) == 0 {
			p.NodeName, p.Unscheduled = b.LastPlaced(), false
		}
	}
	w.settle()
}

// provision launches nodes for pods that have none, and counts them.
func (w *world) provision() int {
	pending := slices.ContainsFunc(w.Snapshot.Pods, func(p cluster.Pod) bool { return p.NodeName == "" })
	if !pending {
		return 0
	}
	p := binpack.PodsFrom(w.Snapshot, w.Market)
	*w.World = *w.Launched(p)
	for i := range w.Snapshot.Claims {
		if c := &w.Snapshot.Claims[i]; c.NodeName == "" {
			c.Name = "late-" + w.Snapshot.Now.Format("150405-") + c.Name
			c.ProviderID = "aws:///" + c.Name
		}
	}
	w.initialize()
	w.schedule()
	return len(p.Launches)
}

// judge checks that no more than two nodes of a pool are on their way out.
func (w *world) judge(t *testing.T, seed uint64) {
	t.Helper()
	out := map[string][]string{}
	for _, node := range w.Snapshot.StateNodes() {
		if node.Claim != nil && node.Node != nil && (node.MarkedForDeletion() || !node.Node.Ready) && node.Initialized() {
			out[node.Pool()] = append(out[node.Pool()], node.Name())
		}
	}
	for pool, nodes := range out {
		if len(nodes) > 2 {
			t.Errorf("seed %d: %d nodes of pool %s are out at once: %s", seed, len(nodes), pool, strings.Join(nodes, ","))
		}
	}
}
