package search

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/model/rounding"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/cover"
	"joiner.sh/pkg/scheduling/packing"
)

const (
	// suited is the number of offerings of best score at which a step looks for each of its batches. A third of that
	// costs 0.1 % more in the mean of the families of infra/lab/ablation, 20 as much as 16.
	suited = 2 * mostMates
	// single is the number of offerings beside them that are the cheapest for a pod of the batch alone. None costs
	// half-empty clusters 0.3 % more, one, three and six as much as two.
	single = 2
)

// rebuiltNode is a new node that a step would make of another.
type rebuiltNode struct {
	offering *capacity.Offering
	takes    []packing.BatchTake
	charge   resources.List            // what it takes of the limits of its pool
	low      capacity.LoweredMinValues // MinValues that are lowered for it
}

// tryRecreate packs the pods of the nodes anew and returns what that saves, 0 when it saves nothing.
func (s *localSearch) tryRecreate(group []*searchNode) float64 {
	solution, t := s.a, group[0].tier
	s.visit++
	s.work += workPerStep
	budget := 0.0
	s.current = s.current[:0]
	for _, n := range group {
		budget += n.cost
		s.countNode(n, -1)
		for _, p := range n.parts {
			if p.batch.Left == 0 {
				s.current = append(s.current, p.batch)
				t.supply[p.batch.ID] = t.supply[p.batch.ID][:0]
			}
			p.batch.Left += len(p.pods)
			t.supply[p.batch.ID] = append(t.supply[p.batch.ID], p.pods...)
		}
	}
	slices.SortFunc(s.current, func(x, y *packing.PodBatch) int { return cmp.Compare(x.ID, y.ID) })
	s.free = slices.ContainsFunc(group, func(n *searchNode) bool {
		return n.host == nil && !slices.ContainsFunc(n.parts, func(p batchPart) bool { return t.own[p.batch.ID] })
	})
	hosts, plan, cost := s.recreateNodes(t, group, budget*(1-rounding.Speck)-rounding.Error)
	saves := cost < budget && s.chargeNodes(plan, t)
	for _, batch := range s.current {
		batch.Left = 0
	}
	before := 0
	for _, n := range group {
		s.countNode(n, 1)
		if n.host == nil {
			before++
		}
	}
	if most := solution.W.S.Rules.MaxClaims; !saves ||
		most != 0 && solution.Used.Opened+len(plan)-before > max(most, 0) {
		return 0
	}
	s.acceptNodes(group, hosts, plan, t)
	return budget - cost
}

// chargeNodes finds what each of the new nodes takes of the limits of its pool, after those before it. It is false
// where limits or MinValues do not allow one of them.
func (s *localSearch) chargeNodes(nodes []rebuiltNode, t *weightTier) (allowed bool) {
	counted := 0
	for allowed = true; allowed && counted < len(nodes); counted++ {
		x := &nodes[counted]
		loads := make([]capacity.PodLoad, len(x.takes))
		for i, take := range x.takes {
			loads[i] = take.LoadOf(t.supply[take.Batch.ID][:take.N])
		}
		x.charge, x.low, allowed = packing.NodeOpener{A: s.a}.ChargeNode(x.offering, loads)
		s.countNodes(x.offering, x.charge, 1)
	}
	for _, x := range nodes[:counted] {
		s.countNodes(x.offering, x.charge, -1)
	}
	return allowed
}

// countNode adds a new node to what its pool and its pool of capacity have, or takes it off.
func (s *localSearch) countNode(n *searchNode, nodes int) {
	if n.host == nil {
		s.countNodes(n.bin.Offering, n.bin.Takes, nodes)
	}
}

// recreateNodes finds room on the hosts of the group, and new nodes for what is left of the current batches then, that
// cost less than the budget together. The cost is more than that when it finds none.
func (s *localSearch) recreateNodes(t *weightTier, group []*searchNode, budget float64) (hosts []hostTakes,
	best []rebuiltNode, cost float64) {
	solution := s.a
	g := packing.NodeOpener{A: solution, Prices: s.prices}.NewPriceGuide()
	g.Memory = &s.memory
	list, offerings := s.offeringsFor(t)
	g.Fits = func(batch *packing.PodBatch, offering int) int { return int(t.fits[batch.ID][list[offering]]) }
	g.PrepareGroups(offerings, s.current)
	s.work += workPerLook * len(s.current) * len(offerings)
	s.shakeValues(g)
	if hosts = s.refillHosts(g, t, group); !g.CountRemaining() {
		return hosts, nil, 0
	}
	cost, found := budget, false
	var now []rebuiltNode
	spent := 0.0
	for g.CountRemaining() {
		if last := s.cheapestLastNode(t, cost-spent); last != nil {
			best, found = append(slices.Clone(now), *last), true
			cost = spent + solution.OfferingCost(last.offering)
		}
		g.ScoreAgain()
		c, takes := g.BestOfActive()
		if c == nil || !s.hasAnchorPod(t, takes) {
			break
		}
		if spent += solution.OfferingCost(c.Offering); spent >= cost {
			break
		}
		if !s.withinLimits(c.Offering) {
			break
		}
		s.countNodes(c.Offering, c.Offering.InstanceType.Type.Capacity, 1)
		now = append(now, rebuiltNode{offering: c.Offering, takes: takes})
		for _, x := range takes {
			x.Batch.Left -= x.N
		}
	}
	for _, x := range now {
		s.countNodes(x.offering, x.offering.InstanceType.Type.Capacity, -1)
	}
	if !found {
		return nil, nil, math.Inf(1)
	}
	return hosts, best, cost
}

// shakeValues gives pods what they are worth in this step: about what their prices say, or their shares of nodes cost.
// With exact values plans cost 0.05 % more in the mean of the families of infra/lab/ablation.
func (s *localSearch) shakeValues(g *packing.PriceGuide) {
	const shake = 0.06
	byShare := s.chance.IntN(2) == 0
	for i := range g.Items {
		it := &g.Items[i]
		base := it.Batches[0].Value
		if byShare {
			base = it.Batches[0].Least
		}
		it.Value = base * (1 + shake*s.chance.NormFloat64())
		g.Filler.Value[i] = it.Value
	}
}

// countNodes adds nodes of the offering to what its pool and its pool of capacity have, or takes them off.
func (s *localSearch) countNodes(o *capacity.Offering, capacity resources.List, nodes int) {
	u := &s.a.Used.Pools[o.InstanceType.Pool.ID]
	u.Nodes += int64(nodes)
	if nodes > 0 {
		u.List = u.List.Add(capacity)
	} else {
		u.List = u.List.Sub(capacity)
	}
	s.use.Add(o.OfferingKey, int64(nodes)*o.InstanceType.Type.Capacity.CPU, nodes)
}

// withinLimits reports whether limits and the share of a pool of spot capacity leave one more node of the offering.
func (s *localSearch) withinLimits(o *capacity.Offering) bool {
	p := o.InstanceType.Pool
	if s.a.Used.ExceedsLimits(p, o.InstanceType.Type.Capacity) {
		return false
	}
	return o.CapacityType != instancetypes.Spot || s.use.AreFew() ||
		s.use.ByPool[o.OfferingKey]+o.InstanceType.Type.Capacity.CPU <= s.ceiling
}

// cheapestLastNode finds the cheapest node below the price that holds all that is left.
func (s *localSearch) cheapestLastNode(t *weightTier, below float64) *rebuiltNode {
	solution := s.a
	if s.want == nil {
		s.want = make([]int64, len(solution.W.Dims))
	}
	clear(s.want)
	for _, batch := range s.current {
		for i, x := range batch.View.Class.Need {
			s.want[i] += x * int64(batch.Left)
		}
	}
	for _, o := range t.offerings {
		if solution.OfferingCost(o) >= below {
			return nil
		}
		if !capacity.AtLeast(o.Room, s.want) || !s.admitsBatch(o) || !s.withinLimits(o) {
			continue
		}
		if takes, all := (packing.NodeOpener{A: solution}).TakeAllLeft(o, s.current); all && s.hasAnchorPod(t, takes) {
			return &rebuiltNode{offering: o, takes: takes}
		}
	}
	return nil
}

// hasAnchorPod reports whether a pod is among the takes for which no heavier pool sells anything: only such pods open
// nodes of the tier, unless limits have let others do so before.
func (s *localSearch) hasAnchorPod(t *weightTier, takes []packing.BatchTake) bool {
	return s.free || slices.ContainsFunc(takes, func(x packing.BatchTake) bool { return t.own[x.Batch.ID] })
}

func (s *localSearch) admitsBatch(o *capacity.Offering) bool {
	for _, batch := range s.current {
		if batch.Left > 0 && o.FirstAlternative(batch.Admit) < 0 {
			return false
		}
	}
	return true
}

// acceptNodes puts the pods onto the new nodes in place of the old ones.
func (s *localSearch) acceptNodes(group []*searchNode, hosts []hostTakes, plan []rebuiltNode, t *weightTier) {
	solution := s.a
	s.work += workPerLook * len(solution.Bins)
	var gone []*capacity.Bin
	for _, n := range group {
		if n.host == nil {
			gone = append(gone, n.bin)
			s.countNode(n, -1)
		}
	}
	solution.Bins = slices.DeleteFunc(solution.Bins, func(b *capacity.Bin) bool { return slices.Contains(gone, b) })
	s.nodes = slices.DeleteFunc(s.nodes, func(n *searchNode) bool { return slices.Contains(gone, n.bin) })
	for _, o := range plan {
		b := solution.NewBin(o.offering, o.charge)
		b.Low = o.low
		b.Name = fmt.Sprintf("again-%05d", s.made)
		s.made++
		n := &searchNode{bin: b, tier: t, cost: solution.OfferingCost(o.offering)}
		for _, x := range o.takes {
			s.putPods(x, b, n, t)
		}
		n.scale, n.waste = n.cost, n.cost-n.podsWorth()
		solution.Bins = append(solution.Bins, b)
		s.nodes = append(s.nodes, n)
		s.countNodes(o.offering, b.Takes, 1)
	}
	for _, x := range hosts {
		s.acceptHost(x, t)
	}
	solution.Used.Opened += len(plan) - len(gone)
	s.fresh += len(plan) - len(gone)
}

// offeringsFor are the offerings that suit any of the current batches, with their places among those of the tier.
func (s *localSearch) offeringsFor(t *weightTier) (list []int32, out []*capacity.Offering) {
	for _, batch := range s.current {
		if t.best[batch.ID] == nil {
			t.best[batch.ID] = s.suitableOfferings(t, batch)
		}
		for _, i := range t.best[batch.ID] {
			if t.marked[i] != s.visit {
				t.marked[i] = s.visit
				list = append(list, i)
			}
		}
	}
	slices.Sort(list)
	out = make([]*capacity.Offering, len(list))
	for i, x := range list {
		out[i] = t.offerings[x]
	}
	return list, out
}

// suitableOfferings finds the offerings that hold the batch's pods: the best of all, and those that are the cheapest
// for one of its pods alone.
func (s *localSearch) suitableOfferings(t *weightTier, batch *packing.PodBatch) []int32 {
	need := batch.View.Class.Need
	var good, cheap bestScores
	t.fits[batch.ID] = make([]int16, len(t.offerings))
	s.looked += workPerLook * len(t.offerings)
	for i, o := range t.offerings {
		if o.FirstAlternative(batch.Admit) < 0 {
			continue
		}
		t.fits[batch.ID][i] = int16(min(math.MaxInt16, capacity.FitCount(need, o.Room)))
		part := capacity.DominantShare(need, o.Room)
		if part > 1 {
			continue
		}
		if t.score[i] == 0 {
			t.score[i] = s.offeringScore(t, o)
		}
		good.addScore(int32(i), t.score[i], suited)
		cheap.addScore(int32(i), s.a.OfferingCost(o)*part, single)
	}
	return append(good.index, cheap.index...)
}

// offeringScore returns the cost of the offering for the worth of its best fill.
func (s *localSearch) offeringScore(t *weightTier, o *capacity.Offering) float64 {
	p := s.prices
	if fill := p.Fill[o.InstanceType]; fill > 0 {
		return s.a.OfferingCost(o) / fill
	}
	solver := cover.NewFiller(len(s.a.W.Dims), nil)
	var items []int32
	var most []float64
	for _, batch := range t.batches {
		if n := capacity.FitCount(batch.View.Class.Need, o.Room); n > 0 && o.FirstAlternative(batch.Admit) >= 0 {
			items, most = append(items, int32(len(items))), append(most, float64(n))
			solver.Need = append(solver.Need, packing.ScaleNeed(batch.View.Class.Need, p.Units)...)
			solver.Group = append(solver.Group, -1)
			solver.Value = append(solver.Value, batch.Value)
		}
	}
	worth := solver.Fill(items, most, packing.ScaleNeed(o.Room, p.Units), &cover.Basis{})
	return s.a.OfferingCost(o) / max(rounding.LeastDivisor, worth)
}
