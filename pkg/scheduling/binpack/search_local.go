package binpack

import (
	"cmp"
	"slices"
)

const (
	// defaultSearchSteps is how many steps a search takes at most.
	defaultSearchSteps = 400
	// patience is how many steps a search goes on without having saved enough, with very few nodes, whose steps take no
	// time, more.
	patience, patienceOfFew = 50, 200
	// mostParts is how many different pods the nodes of one step have, about, if they are more than two.
	mostParts = 60
	// enoughSaved is the part of the price that steps have to save while patience lasts.
	enoughSaved = 0.001
)

// localSearch makes a plan cheaper step by step: it takes a few new nodes away, wasteful ones first, packs their pods
// anew by the same exact rules, and keeps that only where it costs less. Pods stay in the domains (zones, say) that
// they were given, so rules that count by domain hold all the time. What it does depends on nothing but the solution,
// and it counts in steps.
type localSearch struct {
	a       *solution
	nodes   []*searchNode // the new nodes that may be taken apart
	tiers   []*weightTier
	step    int
	made    int
	use     spotUsage // of the plan as it is
	ceiling int64     // of one pool of spot capacity, in millicores
	want    []int64
	free    bool // of the step: new nodes need no pod of their tier's own
	current []*podBatch
}

// searchNode is a new node as the search sees it.
type searchNode struct {
	bin   *bin
	parts []batchPart
	tier  *weightTier
	cost  float64
	waste float64 // what it costs beyond what its pods are worth
	tries int     // steps that began with it
}

// batchPart is some pods of a batch on a node.
type batchPart struct {
	batch *podBatch
	pods  []string
}

// weightTier is the pools of one weight: pods on their nodes stay on nodes of that weight.
type weightTier struct {
	pools   []*pool
	batches []*podBatch
	supply  [][]string      // by batch: the pods of the step
	offers  []*poolOffering // worth a look, cheapest first
	own     []bool          // by batch: no heavier pool sells anything for it
	marked  []int           // by offer: the step that looked at it last
	score   []float64
	best    [][]int32 // by batch: a few offers that suit it, once asked
}

// improveByLocalSearch searches for a cheaper plan in so many steps.
func improveByLocalSearch(a *solution, steps int) {
	if steps <= 0 || a.used.opened == 0 {
		return
	}
	goal := a.lowerBound() * (1 + smallGap)
	if a.newNodePrice() <= goal {
		return
	}
	bins, usage, opened := slices.Clone(a.bins), slices.Clone(a.used.pools), a.used.opened
	s := &localSearch{a: a, use: a.spotUse()}
	s.ceiling = s.use.mostInPool()
	if s.readNodes(); !s.runSteps(steps, goal) || !s.use.anyExceedsShare() {
		return
	}
	// Nodes that have to be something else than the cheapest may eat up what was saved.
	after := (&planWriter{a: a}).launchCost()
	newBins, newUsage, newOpened := a.bins, a.used.pools, a.used.opened
	a.bins, a.used.pools, a.used.opened = bins, usage, opened
	if after < (&planWriter{a: a}).launchCost() {
		a.bins, a.used.pools, a.used.opened = newBins, newUsage, newOpened
	}
}

// runSteps takes the steps until the plan costs no more than the goal or steps do not pay; false when nothing was
// saved.
func (s *localSearch) runSteps(steps int, goal float64) bool {
	total := 0.0
	for _, n := range s.nodes {
		total += n.cost
	}
	first, since, saved := total, 0, 0.0
	patient := patience
	if len(s.nodes) <= veryFewNodes {
		patient = patienceOfFew
	}
	for s.step = 1; s.step <= steps && len(s.nodes) > 0 && total > goal; s.step++ {
		gain := s.tryRecreate(s.pickNodes())
		total -= gain
		saved += gain
		if since++; saved > enoughSaved*total {
			saved, since = 0, 0
		}
		if since > patient {
			break
		}
	}
	return total < first
}

// readNodes finds the nodes that may be taken apart and the batches of their pods.
func (s *localSearch) readNodes() {
	a := s.a
	type alike struct {
		tier  *weightTier
		view  *relaxedPod
		admit *nodeAdmission
	}
	ids := map[alike]*podBatch{}
	tierOf := s.readTiers()
	for _, b := range a.bins {
		if b.offer == nil || b.offer.Limited() || b.offer.model.pool.minValues() ||
			slices.ContainsFunc(b.load, mustStay) {
			continue
		}
		n := &searchNode{bin: b, tier: tierOf[b.offer.model.pool.Weight]}
		for _, l := range b.load {
			a.w.faults.planted(StageSearch, l.view.class, b.offer.model.pool)
			id := alike{n.tier, l.view, l.admit}
			x := ids[id]
			if x == nil {
				x = &podBatch{id: len(n.tier.batches), view: l.view, pins: l.pins, admit: l.admit}
				ids[id] = x
				n.tier.batches = append(n.tier.batches, x)
			}
			x.left += len(l.pods)
			n.parts = append(n.parts, batchPart{x, l.pods})
		}
		s.nodes = append(s.nodes, n)
	}
	for _, t := range s.tiers {
		t.lookAtOffers(a)
	}
	for _, n := range s.nodes {
		n.cost = a.priceOf(n.bin) + a.strategy.nodeCost
		n.waste = n.cost - n.podsWorth()
	}
	for _, t := range s.tiers {
		for _, l := range t.batches {
			l.left = 0
		}
	}
}

// readTiers finds the pools of each weight whose nodes may be taken apart.
func (s *localSearch) readTiers() map[int32]*weightTier {
	tierOf := map[int32]*weightTier{}
	for _, p := range s.a.w.catalog.pools {
		t := tierOf[p.Weight]
		if t == nil {
			t = &weightTier{}
			tierOf[p.Weight] = t
			s.tiers = append(s.tiers, t)
		}
		if !p.minValues() {
			t.pools = append(t.pools, p)
		}
	}
	return tierOf
}

// lookAtOffers finds the offers of the tier that are worth a look for its batches, and with that what these are worth.
func (t *weightTier) lookAtOffers(a *solution) {
	t.offers = nodeOpener{a: a}.candidateOffers(t.pools, t.batches)
	t.best = make([][]int32, len(t.batches))
	for _, l := range t.batches {
		h := a.w.catalog.heaviestTier(l)
		t.own = append(t.own, h < 0 || len(t.pools) == 0 ||
			a.w.catalog.byWeight().pools[h][0].Weight <= t.pools[0].Weight)
	}
	t.supply = make([][]string, len(t.batches))
	t.score = make([]float64, len(t.offers))
	t.marked = make([]int, len(t.offers))
}

// mustStay reports whether the load's pods must stay near others on the node.
func mustStay(l podLoad) bool {
	return l.settled || slices.ContainsFunc(l.view.host, func(r topologyRule) bool { return r.what == follow })
}

func (n *searchNode) podsWorth() float64 {
	sum := 0.0
	for _, p := range n.parts {
		sum += float64(len(p.pods)) * p.batch.value
	}
	return sum
}

// pickNodes chooses the nodes of the next step: the one that wastes most among those tried least, and some that could
// hold its pods or whose pods it could hold.
func (s *localSearch) pickNodes() []*searchNode {
	seed := slices.MaxFunc(s.nodes, func(x, y *searchNode) int {
		return cmp.Compare(x.waste/float64((1+x.tries)*(1+x.tries)), y.waste/float64((1+y.tries)*(1+y.tries)))
	})
	seed.tries++
	size := 1 + int(mixBits(s.step)%8)
	var mates bestScores
	for i, n := range s.nodes {
		if n == seed || n.tier != seed.tier {
			continue
		}
		chance := 0.5 + float64(mixBits(s.step*len(s.nodes)+i)%1000)/1000
		weight := (n.waste + 0.02*n.cost) / n.cost * chance
		if mates.isFull(size) && weight > 0 && -2*weight >= mates.score[size-1] {
			continue // not even if each could hold all of the other
		}
		if fit := seed.suitablePart(n) + n.suitablePart(seed); fit > 0 {
			mates.addScore(int32(i), -fit*weight, size)
		}
	}
	out := []*searchNode{seed}
	parts := len(seed.parts)
	for _, i := range mates.index {
		if parts += len(s.nodes[i].parts); parts > mostParts && len(out) > 1 {
			break
		}
		out = append(out, s.nodes[i])
	}
	return out
}

// suitablePart is the part of the other's pods, by worth, that could be on the node.
func (n *searchNode) suitablePart(other *searchNode) float64 {
	some, all := 0.0, 0.0
	for _, p := range other.parts {
		w := float64(len(p.pods)) * p.batch.value
		all += w
		if p.batch.admit.firstAlternative(n.bin.offer) >= 0 && fitCount(p.batch.view.class.need, n.bin.offer.room) > 0 {
			some += w
		}
	}
	return some / max(all, 1e-12)
}

// mixBits turns a number into one that looks like chance, always the same.
func mixBits(n int) uint64 {
	x := uint64(n) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
