package disrupt

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
	"joiner/pkg/pack"
	"joiner/pkg/scenario"
)

// grown is a random world whose pods run, on nodes that were launched for them, after every third of its pods has ended.
func grown(t *testing.T, seed uint64) *world {
	t.Helper()
	random, err := scenario.Random(seed)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	*w.World = *random
	for range 3 {
		*w.World = *w.Launched(pack.PodsFrom(w.Snapshot, w.Market))
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

// Whatever the cluster looks like: a disruption never makes it dearer, leaves every pod that ran a place, keeps to the budgets, does
// not depend on the order of what it is shown, and comes to rest.
func TestRandomWorlds(t *testing.T) {
	saved, moved, ended, launched := 0.0, 0, 0, 0
	for seed := range uint64(120) {
		w := grown(t, seed)
		if seed%2 == 1 {
			w.hold()
		}
		before := w.price()
		running := len(w.Snapshot.Pods)
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
				moved += c.Moves
			}
			w.act(p)
			ended += len(p.Finish)
			w.judge(t, seed)
			w.initialize()
			launched += w.provision()
			w.Snapshot.Now = w.Snapshot.Now.Add(20 * time.Second)
			quiet++
			if len(p.Begin)+len(p.Finish)+len(p.Undo)+len(p.Proposed)+len(p.Waiting) > 0 {
				quiet = 0
			}
		}
		homed := 0
		for _, p := range w.Snapshot.Pods {
			if p.NodeName != "" {
				homed++
			}
		}
		if homed < running {
			t.Errorf("seed %d: %d of %d pods lost their place", seed, running-homed, running)
		}
		if after := w.price(); after > before+1e-9 {
			t.Errorf("seed %d: dearer, %.4f after %.4f", seed, after, before)
		} else {
			saved += before - after
		}
	}
	t.Logf("saved %.2f USD/h, moved %d pods, ended %d commands, launched %d nodes besides", saved, moved, ended, launched)
	if launched > ended/50 {
		t.Errorf("after %d of %d commands pods had no room where it was said to be", launched, ended)
	}
	if saved < 10 || moved < 100 || ended < 100 {
		t.Errorf("too little happened to test anything: saved %.2f USD/h, moved %d pods, ended %d commands", saved, moved, ended)
	}
}

// provision launches nodes for pods that have none, and counts them.
func (w *world) provision() int {
	homeless := slices.ContainsFunc(w.Snapshot.Pods, func(p cluster.Pod) bool { return p.NodeName == "" })
	if !homeless {
		return 0
	}
	p := pack.PodsFrom(w.Snapshot, w.Market)
	*w.World = *w.Launched(p)
	for i := range w.Snapshot.Claims {
		if c := &w.Snapshot.Claims[i]; c.NodeName == "" {
			c.Name = "late-" + w.Snapshot.Now.Format("150405-") + c.Name
			c.ProviderID = "aws:///" + c.Name
		}
	}
	w.initialize()
	w.settle()
	return len(p.Launches)
}

// judge checks that no more than two nodes of a pool are on their way out.
func (w *world) judge(t *testing.T, seed uint64) {
	t.Helper()
	out := map[string][]string{}
	for _, h := range w.Snapshot.Hosts() {
		if h.Claim != nil && h.Node != nil && (h.Condemned() || !h.Node.Ready) && h.Initialized() {
			out[h.Pool()] = append(out[h.Pool()], h.Name())
		}
	}
	for pool, nodes := range out {
		if len(nodes) > 2 {
			t.Errorf("seed %d: %d nodes of pool %s are out at once: %s", seed, len(nodes), pool, strings.Join(nodes, ","))
		}
	}
}
