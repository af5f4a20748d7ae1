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
	corev1 "k8s.io/api/core/v1"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption/simulator"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/requirements"
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

// Where PodDisruptionBudgets let pods go one by one only, each drain ends: what was evicted finds a place while the
// others still run, so that the next may go.
func TestDrainsWithinPodBudgetsEnd(t *testing.T) {
	drained, budgeted := 0, 0
	for i := range worlds.N() {
		seed := *firstWorld + uint64(i)
		w := grown(t, seed)
		w.schedule = func() { w.emptiestFirst(seed) }
		budgeted += w.addPodBudgets()
		w.addSelfAffinity()
		w.drain = func(claims []string) {
			drained++
			for _, p := range w.drainOneByOne(claims, seed) {
				t.Errorf("seed %d: the drain of %s does not end: pod %s stays, %v wait", seed, strings.Join(claims, ","), p,
					w.waiting())
			}
		}
		w.toRest(t, seed)
	}
	if drained < worlds.N()/2 || budgeted < 2*worlds.N() {
		t.Errorf("too little happened to test anything: %d drains, %d budgets", drained, budgeted)
	}
}

// addPodBudgets lets pods of each name go one by one, and returns how many budgets that are. It leaves out
// those of which nobody but the packer knows where they may be, and those that follow pods which stay until their node
// ends. It also leaves out those that spread over labels such as the capacity type: in one of 500 worlds the last node
// of such a domain goes, and they do not find out of it.
func (w *world) addPodBudgets() (n int) {
	kinds := map[string]bool{}
	for i := range w.Snapshot.Pods {
		p := &w.Snapshot.Pods[i]
		p.Phase = "Running" // of others nobody asks budgets
		app := p.Labels["app"]
		_, known := kinds[app]
		modelled := len(p.HostPorts)+len(p.VolumeZones)+len(p.Volumes) == 0 &&
			!w.followsUndrained(p) && !slices.ContainsFunc(p.Spread, func(s cluster.Spread) bool {
			return s.Key != corev1.LabelTopologyZone && s.Key != corev1.LabelHostname
		})
		kinds[app] = modelled && (!known || kinds[app])
	}
	for app, modelled := range kinds {
		if modelled && app != "" {
			n++
			w.Snapshot.Budgets = append(w.Snapshot.Budgets, cluster.PodDisruptionBudget{Namespace: "default", Name: app,
				DisruptionsAllowed: 1, Selector: &cluster.Selector{
					Requirements: []requirements.Requirement{{Key: "app", Values: []string{app}}}}})
		}
	}
	return n
}

// followsUndrained reports whether the pod must be beside a pod that ends with its node.
func (w *world) followsUndrained(p *cluster.Pod) bool {
	return slices.ContainsFunc(p.Affinity, func(t cluster.AffinityTerm) bool {
		return slices.ContainsFunc(w.Snapshot.Pods, func(o cluster.Pod) bool {
			return t.Selector.Matches(o.Labels) && !o.IsDrained()
		})
	})
}

// addSelfAffinity has the pods of each name share the domain that they share already.
func (w *world) addSelfAffinity() {
	nodes := lists.Pointers(w.Snapshot.Nodes, func(n *cluster.Node) string { return n.Name })
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelInstanceTypeStable, corev1.LabelHostname} {
		domains := map[string]map[string]bool{}
		for _, p := range w.Snapshot.Pods {
			if app := p.Labels["app"]; domains[app] == nil {
				domains[app] = map[string]bool{}
			}
			domains[p.Labels["app"]][nodes[p.NodeName].Labels[key]] = true
		}
		for i := range w.Snapshot.Pods {
			p := &w.Snapshot.Pods[i]
			if app := p.Labels["app"]; app != "" && len(domains[app]) == 1 && len(p.Affinity) == 0 {
				p.Affinity = []cluster.AffinityTerm{{Key: key, Selector: &cluster.Selector{
					Requirements: []requirements.Requirement{{Key: "app", Values: []string{app}}}}}}
			}
		}
	}
}

// drainOneByOne evicts what the budgets let go, in rounds in which the scheduler places what waits, and returns the
// pods that stay.
func (w *world) drainOneByOne(claims []string, seed uint64) (stay []string) {
	names := map[string]bool{}
	w.untaint(claims) // the simulator knows no tainted nodes, and pods there count
	w.eachNode(claims, func(n *cluster.Node) { names[n.Name], n.Allocatable = true, noAllocatable() })
	for more := true; more; {
		more = false
		stay = nil
		for i := range w.Snapshot.Pods {
			p := &w.Snapshot.Pods[i]
			switch {
			case !names[p.NodeName] || !p.Reschedulable() || !p.IsDrained():
			case w.mayEvict(p):
				p.NodeName, p.Unscheduled, more = "", true, true
			default:
				stay = append(stay, p.Key())
			}
		}
		w.bindToEmptiest(seed)
	}
	return stay
}

// mayEvict reports whether the budgets of the pod let it go while those wait that wait.
func (w *world) mayEvict(p *cluster.Pod) bool {
	return !slices.ContainsFunc(w.Snapshot.Budgets, func(b cluster.PodDisruptionBudget) bool {
		out := lists.Count(w.Snapshot.Pods, func(o cluster.Pod) bool {
			return o.NodeName == "" && b.Selector.Matches(o.Labels)
		})
		return b.Selector.Matches(p.Labels) && int(b.DisruptionsAllowed) <= out
	})
}

// waiting returns the pods without a node.
func (w *world) waiting() []string {
	return lists.Of(lists.Where(w.Snapshot.Pods, func(p cluster.Pod) bool { return p.NodeName == "" }), cluster.Pod.Key)
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

// emptiestFirst is bindToEmptiest. Pods that it finds no node for, and those about which more decides, run where the
// packer puts them.
func (w *world) emptiestFirst(seed uint64) {
	w.bindToEmptiest(seed)
	w.settle()
}

// bindToEmptiest gives pods that wait the emptiest node, in any order, as the scheduler does.
func (w *world) bindToEmptiest(seed uint64) {
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
