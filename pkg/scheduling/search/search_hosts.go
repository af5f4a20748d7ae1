package search

import (
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/cover"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
)

// readHosts finds the hosts that pods may leave or come to. Their own pods join the batches of the tier that would make
// nodes for them.
func (s *localSearch) readHosts(join func(*searchNode, capacity.PodLoad)) {
	solution := s.a
	tiers := map[int32]*weightTier{}
	for _, t := range s.tiers {
		if len(t.pools) > 0 {
			tiers[t.pools[0].Weight] = t
		}
	}
	for i, bin := range solution.W.Nodes.Hosts {
		b := solution.Bins[i]
		if slices.ContainsFunc(b.Load, followsOnHost) {
			continue
		}
		n := &searchNode{bin: b, host: &searchHost{index: i, base: bin.Clone()}}
		for _, l := range b.Load {
			t := s.homeTier(l, tiers)
			if l.Settled || l.Pod.Class.Stays || t == nil || n.tier != nil && n.tier != t || !s.staysCounted(l) {
				solution.AddToBin(l, n.host.base)
				continue
			}
			n.tier = t
			join(n, l)
		}
		s.hosts = append(s.hosts, n)
	}
}

// homeTier is the tier whose pools would make nodes for the pods, nil when there is none.
func (s *localSearch) homeTier(l capacity.PodLoad, tiers map[int32]*weightTier) *weightTier {
	at := s.a.W.Catalog.HeaviestTier(l.Admission, l.Pod.Class)
	if at < 0 {
		return nil
	}
	return tiers[s.a.W.Catalog.ByWeight()[at][0].Weight]
}

// followsOnHost reports whether the load's pods must be near others on the node.
func followsOnHost(l capacity.PodLoad) bool { return l.Pod.HasHostAffinity() }

// staysCounted reports whether the load's pods count for the same rules wherever else they may be: each rule over
// domains ties them to one, and no rule counts only some of the nodes there.
func (s *localSearch) staysCounted(l capacity.PodLoad) bool {
	top := s.a.W.Topology
	for _, c := range l.Pod.Class.Matched {
		x := &top.Counters[c]
		if x.Key == podclass.LabelHost {
			continue
		}
		if !slices.ContainsFunc(l.Pins, func(p podclass.DomainPin) bool { return p.Key == x.Key }) ||
			x.Filter != nil && !top.AdmitsAll(x.Filter, l.Admission) {
			return false
		}
	}
	return !slices.ContainsFunc(l.Pod.DomainRules, func(r podclass.TopologyRule) bool {
		return !slices.ContainsFunc(l.Pins, func(p podclass.DomainPin) bool { return p.Key == r.Key })
	})
}

// rateHosts tells what the room of each host is worth, and leaves out those on which no pod of a new node can be.
func (s *localSearch) rateHosts() {
	for _, n := range s.hosts {
		solver := cover.NewFiller(len(s.a.W.Dims), nil)
		var items []int32
		var most []float64
		for _, t := range s.tiers {
			if n.tier != nil && n.tier != t {
				continue
			}
			for _, batch := range t.batches {
				if k := capacity.FitCount(batch.View.Class.Need, n.host.base.Room); k > 0 && t.mayJoin(batch, n) {
					items, most = append(items, int32(len(items))), append(most, float64(min(k, batch.Left)))
					solver.Need = append(solver.Need, packing.ScaleNeed(batch.View.Class.Need, s.prices.Units)...)
					solver.Group, solver.Value = append(solver.Group, -1), append(solver.Value, batch.Value)
				}
			}
		}
		if len(items) > 0 {
			n.scale = solver.Fill(items, most, packing.ScaleNeed(n.host.base.Room, s.prices.Units), &cover.Basis{})
		}
		if n.waste = n.scale - n.podsWorth(); n.scale > 0 {
			s.nodes = append(s.nodes, n)
		}
	}
}

// mayJoin reports whether pods of the batch may be on the host, as far as its labels and taints tell.
func (t *weightTier) mayJoin(batch *packing.PodBatch, n *searchNode) bool {
	if !t.moves[batch.ID] {
		return false
	}
	known := &t.onHost[batch.ID][n.host.index]
	if *known == 0 {
		if *known = -1; n.host.base.AlternativeFor(batch.Admit) >= 0 {
			*known = 1
		}
	}
	return *known > 0
}

// refillHosts puts what is left of the current batches on the hosts of the group, those pods first that are worth most
// together.
func (s *localSearch) refillHosts(g *packing.PriceGuide, t *weightTier, group []*searchNode) (out []hostTakes) {
	for _, n := range group {
		if n.host == nil {
			continue
		}
		x := hostTakes{node: n}
		if g.CountRemaining() {
			c := g.HostCandidate(n.host.index, n.host.base, func(batch *packing.PodBatch) bool {
				return t.mayJoin(batch, n)
			})
			g.ScoreCandidate(c)
			x.takes, _ = g.FillWholePods(c)
			for _, take := range x.takes {
				take.Batch.Left -= take.N
			}
		}
		out = append(out, x)
	}
	return out
}

// acceptHost puts the pods on the host in place of those of this plan that were there.
func (s *localSearch) acceptHost(x hostTakes, t *weightTier) {
	n := x.node
	b := n.host.base.Clone()
	b.Load = slices.Clone(b.Load)
	n.parts, n.tier = n.parts[:0:0], nil
	for _, take := range x.takes {
		s.putPods(take, b, n, t)
		n.tier = t
	}
	n.bin, s.a.Bins[n.host.index] = b, b
	n.waste = n.scale - n.podsWorth()
}
