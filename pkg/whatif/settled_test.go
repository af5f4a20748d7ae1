package whatif

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

var worldGuards = shortrun.NewCount("whatif-guards", 100, 6, "random clusters whose protections are taken away")

// settledWorld is the world in which disruption finds no more: passes a minute apart, whose commands are carried out at
// once.
func settledWorld(w *scenario.World) *scenario.World {
	var m disruption.Memory
	out := *w
	for pass, quiet := 0, 0; quiet < 3 && pass < 60; pass++ {
		out.Snapshot.Now = out.Snapshot.Now.Add(time.Minute)
		p, after := disruption.Next(out.Snapshot, m, out.Market)
		m, quiet = after, quiet+1
		for _, c := range p.Begin {
			out = *carriedOut(&out, c)
		}
		if len(p.Begin)+len(p.Proposed) > 0 {
			quiet = 0
		}
	}
	return &out
}

// carriedOut is the world after the command: its nodes are gone, its launches serve, and the pods are where there is
// room, or on new nodes.
func carriedOut(w *scenario.World, c disruption.Command) *scenario.World {
	out := *w
	s := &out.Snapshot
	gone := map[string]bool{}
	for _, x := range s.Claims {
		if slices.Contains(c.Claims, x.Name) {
			gone[x.NodeName] = true
		}
	}
	s.Claims = slices.DeleteFunc(slices.Clone(s.Claims), func(x cluster.Claim) bool { return gone[x.NodeName] })
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n cluster.Node) bool { return gone[n.Name] })
	s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p cluster.Pod) bool { return gone[p.NodeName] && !p.Reschedulable() })
	for i := range s.Pods {
		if p := &s.Pods[i]; gone[p.NodeName] {
			p.NodeName, p.Phase, p.Unscheduled = "", "Pending", true
		}
	}
	next := serving(out.Launched(plan.Plan{Launches: c.Launches}))
	for range 2 { // the second pass binds pods to what the first launches
		next = serving(next.Launched(binpack.PodsFrom(next.Snapshot, next.Market)))
	}
	return next
}

// serving has a ready node for each claim that was launched.
func serving(w *scenario.World) *scenario.World {
	s := &w.Snapshot
	s.Nodes, s.Claims = slices.Clone(s.Nodes), slices.Clone(s.Claims)
	for i := range s.Claims {
		c := &s.Claims[i]
		if c.NodeName != "" {
			continue
		}
		c.Name = fmt.Sprintf("served-%d-%d", s.Now.Unix(), len(s.Nodes))
		for slices.ContainsFunc(s.Nodes, func(n cluster.Node) bool { return n.Name == c.Name }) {
			c.Name += "x"
		}
		c.NodeName, c.ProviderID, c.Created = c.Name, "aws:///"+c.Name, s.Now
		c.Conditions = append(slices.Clone(c.Conditions), cluster.Condition{Type: v1.ConditionInitialized, Status: "True"})
		labels := maps.Clone(c.Labels)
		labels[v1.LabelRegistered], labels[v1.LabelInitialized], labels[v1.LabelNodePool] = "true", "true", c.Pool
		s.Nodes = append(s.Nodes, cluster.Node{Name: c.Name, ProviderID: c.ProviderID, Created: s.Now, Labels: labels, Capacity: c.Capacity,
			Allocatable: c.Allocatable, Ready: true})
	}
	return w
}

// hourlyUSD is what the nodes cost.
func hourlyUSD(w *scenario.World) (usd float64) {
	price := map[string]float64{}
	for _, t := range w.Market("") {
		for _, o := range t.Offerings {
			price[o.String()] = o.Price
		}
	}
	for _, node := range w.Snapshot.StateNodes() {
		usd += price[node.OfferingKey().String()]
	}
	return usd
}

// What a protection is said to cost is what comes when it is taken away and disruption goes on: at least nine tenths in
// the median, and never less than half.
func TestProtectionsCostWhatIsSaid(t *testing.T) {
	var parts []float64
	for seed := *firstWorld; seed < *firstWorld+uint64(worldGuards.N()); seed++ {
		w := settledWorld(stuckWorld(t, seed))
		l := newLedger(w.Snapshot, disruption.Memory{}, w.Market, Limits{})
		all := l.listGuards(nil)
		for _, p := range Protections(w.Snapshot, disruption.Memory{}, w.Market, nil, Limits{}) {
			free, before := *w, hourlyUSD(w)
			free.Snapshot = withoutGuards(w.Snapshot, slices.DeleteFunc(slices.Clone(all),
				func(g guard) bool { return g.name != p.Guard && !slices.Contains(p.Together, g.name) }))
			part := 24 * (before - hourlyUSD(settledWorld(&free))) / p.DailyUSD
			parts = append(parts, part)
			if part < 0.5 {
				t.Errorf("world %d: %s: %.2f of it comes", seed, p, part)
			}
		}
	}
	slices.Sort(parts)
	if len(parts) < worldGuards.N()/2 {
		t.Fatalf("%d protections in %d worlds: that tests little", len(parts), worldGuards.N())
	}
	median := parts[len(parts)/2]
	t.Logf("%d protections: the least part that comes is %.2f, the median %.2f", len(parts), parts[0], median)
	if median < 0.9 {
		t.Errorf("in the median %.2f of what is said comes", median)
	}
}
