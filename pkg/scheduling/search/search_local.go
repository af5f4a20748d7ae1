package search

import (
	"math"
	"math/rand/v2"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/rounding"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/report"
)

// improveByLocalSearch searches for a cheaper plan within the limit, by the guide's prices.
func improveByLocalSearch(solution *packing.Solution, st pricedStrategy, most searchLimit) {
	if most.steps <= 0 || most.steps == math.MaxInt && most.work <= 0 || solution.Used.Opened == 0 {
		return
	}
	goal := st.pricing.LowerBound(solution) * (1 + smallGap)
	if solution.NewNodePrice() <= goal {
		return
	}
	bins, usage, opened := slices.Clone(solution.Bins), slices.Clone(solution.Used.Pools), solution.Used.Opened
	s := &localSearch{a: solution, prices: st.guide, use: solution.SpotUse(), chance: rand.New(rand.NewPCG(1, 2))}
	s.ceiling = s.use.MostInPool()
	if s.readNodes(); !s.runSteps(most, goal) || !s.use.AnyExceedsShare() {
		return
	}
	// Nodes that have to be something else than the cheapest may eat up what was saved.
	after := (&report.PlanWriter{Solution: solution}).LaunchCost()
	newBins, newUsage, newOpened := solution.Bins, solution.Used.Pools, solution.Used.Opened
	solution.Bins, solution.Used.Pools, solution.Used.Opened = bins, usage, opened
	if after < (&report.PlanWriter{Solution: solution}).LaunchCost() {
		solution.Bins, solution.Used.Pools, solution.Used.Opened = newBins, newUsage, newOpened
	}
}

// tellSearched tells of everything on new nodes of the solution, which searches begin with, whichever of them find that
// there is nothing to save.
func tellSearched(s *packing.Solution) {
	for _, b := range s.Bins {
		if b.Offering == nil {
			continue
		}
		for _, l := range b.Load {
			s.W.Stages.Tell(cluster.StageSearch, l.Pod.Class, b.Offering.InstanceType.Pool.Name)
		}
	}
}

// runSteps takes the steps until the plan costs no more than the goal or steps do not pay; false when nothing was
// saved.
func (s *localSearch) runSteps(most searchLimit, goal float64) bool {
	total := 0.0
	for _, n := range s.nodes {
		total += n.cost
	}
	first, progress := total, searchProgress{}
	patient := s.patienceFor(most)
	for s.step = 1 + most.done; s.step <= most.steps && s.fresh > 0 && total > goal; s.step++ {
		if most.work > 0 && s.work > most.work {
			break
		}
		if most.left != nil && *most.left < s.work+s.looked {
			break
		}
		gain := s.tryRecreate(s.pickNodes())
		total -= gain
		if progress.countStep(gain, total); progress.since > patient {
			break
		}
	}
	if most.left != nil {
		*most.left -= s.work + s.looked
	}
	return total < first
}

// readNodes finds the nodes that may be taken apart and the batches of their pods.
func (s *localSearch) readNodes() {
	solution := s.a
	type alike struct {
		tier  *weightTier
		view  *podclass.RelaxedPod
		admit *podclass.Admission
	}
	ids := map[alike]*packing.PodBatch{}
	tierOf := s.readTiers()
	join := func(n *searchNode, l capacity.PodLoad) {
		id := alike{n.tier, l.Pod, l.Admission}
		x := ids[id]
		if x == nil {
			x = &packing.PodBatch{ID: len(n.tier.batches), View: l.Pod, Pins: l.Pins, Admit: l.Admission}
			ids[id] = x
			n.tier.batches = append(n.tier.batches, x)
			n.tier.moves = append(n.tier.moves, len(solution.W.Nodes.Hosts) > 0 && s.staysCounted(l))
		}
		x.Left += len(l.Pods)
		n.parts = append(n.parts, batchPart{x, l.Pods})
	}
	for _, b := range solution.Bins {
		if b.Offering == nil || b.Offering.Limited() || slices.ContainsFunc(b.Load, mustStay) {
			continue
		}
		n := &searchNode{bin: b, tier: tierOf[b.Offering.InstanceType.Pool.Weight]}
		for _, l := range b.Load {
			join(n, l)
		}
		s.nodes = append(s.nodes, n)
	}
	if s.fresh = len(s.nodes); s.fresh > 0 {
		s.readHosts(join)
	}
	for _, t := range s.tiers {
		t.lookAtOfferings(solution, s.prices)
	}
	for _, n := range s.nodes {
		n.cost = solution.PriceOf(n.bin) + solution.Strategy.NodeCost
		n.scale, n.waste = n.cost, n.cost-n.podsWorth()
	}
	s.rateHosts()
	for _, t := range s.tiers {
		for _, batch := range t.batches {
			batch.Left = 0
		}
	}
}

// readTiers finds the pools of each weight whose nodes may be taken apart.
func (s *localSearch) readTiers() map[int32]*weightTier {
	tierOf := map[int32]*weightTier{}
	for _, p := range s.a.W.Catalog.Pools {
		t := tierOf[p.Weight]
		if t == nil {
			t = &weightTier{}
			tierOf[p.Weight] = t
			s.tiers = append(s.tiers, t)
		}
		t.pools = append(t.pools, p)
	}
	return tierOf
}

// lookAtOfferings finds the offerings of the tier that are worth a look for its batches, and with that what these are
// worth.
func (t *weightTier) lookAtOfferings(s *packing.Solution, worth packing.PodPrices) {
	t.offerings = packing.NodeOpener{A: s, Prices: worth}.CandidateOfferings(t.pools, t.batches)
	t.best, t.fits = make([][]int32, len(t.batches)), make([][]int16, len(t.batches))
	t.onHost = make([][]int8, len(t.batches))
	for i := range t.onHost {
		t.onHost[i] = make([]int8, len(s.W.Nodes.Hosts))
	}
	for _, batch := range t.batches {
		h := s.W.Catalog.HeaviestTier(batch.Admit, batch.View.Class)
		t.own = append(t.own, h < 0 || len(t.pools) == 0 ||
			s.W.Catalog.ByWeight()[h][0].Weight <= t.pools[0].Weight)
	}
	t.supply = make([][]string, len(t.batches))
	t.score = make([]float64, len(t.offerings))
	t.marked = make([]int, len(t.offerings))
}

// mustStay reports whether the load's pods must stay near others on the node.
func mustStay(l capacity.PodLoad) bool {
	return l.Settled || followsOnHost(l)
}

// pickNodes chooses the nodes of the next step: the one that wastes most among those tried least, and some that could
// hold its pods or whose pods it could hold.
func (s *localSearch) pickNodes() []*searchNode {
	seed := s.pickSeed()
	seed.tries++
	s.work += workPerLook * len(s.nodes) * (1 + len(seed.parts))
	others := mostMates
	if len(s.nodes) > s.fresh {
		others = 2 * mostMates
	}
	size := 1 + s.chance.IntN(others)
	var mates bestScores
	for i, n := range s.nodes {
		if n == seed || n.tier != seed.tier && n.tier != nil {
			continue
		}
		weight := n.waste / n.scale * (1 + s.chance.Float64())
		if mates.isFull(size) && weight > 0 && -2*weight >= mates.score[size-1] {
			continue // not even if each could hold all of the other
		}
		if fit := seed.suitablePart(n) + n.suitablePart(seed); fit > 0 {
			mates.addScore(int32(i), -fit*weight, size)
		}
	}
	out := []*searchNode{seed}
	for _, i := range mates.index {
		out = append(out, s.nodes[i])
	}
	return out
}

// suitablePart is the part of the other's pods, by worth, that could be on the node.
func (n *searchNode) suitablePart(other *searchNode) float64 {
	some, all := 0.0, 0.0
	for _, p := range other.parts {
		w := float64(len(p.pods)) * p.batch.Value
		all += w
		if n.couldHold(p.batch, other) {
			some += w
		}
	}
	return some / max(all, rounding.LeastDivisor)
}

// couldHold reports whether a pod of the batch, which is one of the other's, could be on the node, were it empty.
func (n *searchNode) couldHold(batch *packing.PodBatch, other *searchNode) bool {
	if n.host != nil {
		return capacity.FitCount(batch.View.Class.Need, n.host.base.Room) > 0 && other.tier.mayJoin(batch, n)
	}
	return n.bin.Offering.FirstAlternative(batch.Admit) >= 0 &&
		capacity.FitCount(batch.View.Class.Need, n.bin.Offering.Room) > 0
}

// pickSeed chooses the new node that wastes most among those tried least.
func (s *localSearch) pickSeed() *searchNode {
	var seed *searchNode
	most := 0.0
	for _, n := range s.nodes {
		if n.host != nil {
			continue
		}
		if x := n.waste / float64((1+n.tries)*(1+n.tries)); seed == nil || x > most {
			seed, most = n, x
		}
	}
	return seed
}
