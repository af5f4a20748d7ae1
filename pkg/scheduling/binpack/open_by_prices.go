package binpack

import (
	"cmp"
	"math"
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/lowerbound"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/podtopology"
)

const (
	// batchShare is the part of what is left that is placed at most before pods are priced anew.
	batchShare = 0.04
	// stale is the part that is left of what was there when pods were priced, at which they are priced anew.
	stale = 0.9
	// staler is the same where there are many classes, and pricing them takes its time.
	staler, manyClasses = 0.8, 200
	// looks is how many of the offers that seem best are tried with whole pods.
	looks = 8
	// thorough is how many times offers are looked at again until all are, not only the hopeful.
	thorough = 16
	// hopeful is what an offer's best fill costs at most, as a part of what it is worth, for the offer to be looked at
	// again.
	hopeful = 1.15
	// most is how many offers are looked at in each batch.
	most = 40
	// refresh is how many batches pass until all offers are looked at again.
	refresh = 5
)

// priceGuide makes nodes by the prices of pods: again and again it prices what is left, asks which offer could hold the
// most worth for its price, and makes a few such nodes.
type priceGuide struct {
	a      *solution
	prices podPrices // the classes of its groups are classes of these
	items  []batchGroup
	filler *lowerbound.KnapsackSolver
	cands  []*candidate
	active []*candidate
	most   []float64
	fits   func(l *podBatch, offer int) int // pods of the batch that a node of the offer holds, nil to ask the offer
	last   []float64                        // while offers are sifted: what resources were worth on the one asked last
	sifts  int
	fresh  bool // values are new since the active were asked
	moved  bool // values are new since all hopeful ones were asked
	memory *guideMemory
}

// batchGroup is batches that are alike to the guide: of one class, and tied to the same places.
type batchGroup struct {
	batches []*podBatch
	caps    []int   // by batch: how many the rules allow on one node
	class   int32   // of the guide's prices
	all     int     // pods that are left
	left    int     // of them, as many as one node may hold
	value   float64 // of one pod
}

// newPriceGuide returns a guide to new nodes and hosts by the prices.
func newPriceGuide(a *solution, prices podPrices) *priceGuide {
	return &priceGuide{a: a, prices: prices, memory: &guideMemory{}}
}

// openByPrices places batches on new nodes in the pools as long as that goes well. What it leaves over is for openTier.
// It returns true when an offer came to the ceiling of its pool of capacity and others have to be looked at.
func (op nodeOpener) openByPrices(pools []*capacity.Pool, batches []*podBatch) bool {
	g := newPriceGuide(op.a, podPricesFor(op.a))
	offers := op.candidateOffers(pools, batches)
	g.prepareGroups(offers, batches)
	sift, priced, since, again := true, math.Inf(1), 0, stale
	if g.prices.rowCount() > manyClasses {
		again = staler
	}
	for !op.a.used.claimsUsedUp() && g.countRemaining() {
		if g.remainingWorth() < priced*again {
			g.repriceRemaining(0)
			priced = g.remainingWorth()
		}
		if sift {
			since = 0
		}
		best, takes := g.bestCandidate(sift)
		switch {
		case best == nil && sift && g.sifts%thorough == 1:
			return false
		case best == nil:
			sift, g.sifts = true, 0
			continue
		}
		since++
		sift = since >= refresh && g.moved
		times := max(1, int(batchShare*g.remainingWorth()/max(best.offer.Price, 1e-9)))
		_, full := op.a.openCopies(best.offer, takes, times)
		if slices.Contains(takes[0].batch.refused, best.offer.InstanceType.Pool) {
			continue // others do without what MinValues refused
		}
		if full {
			return op.a.used.spotAllowance(best.offer, 1) == 0
		}
	}
	return false
}

// prepareGroups finds the groups of the batches, and the candidates that hold pods of some of them.
func (g *priceGuide) prepareGroups(offers []*capacity.Offering, batches []*podBatch) {
	classes, groupCaps := g.prices.priceClasses()
	type alike struct {
		class int32
		admit *podclass.Admission
	}
	g.memory.reserveBatches(len(batches))
	g.items = g.memory.groups
	ids := make(map[alike]int, len(batches))
	g.filler = lowerbound.NewFiller(len(g.a.w.dims), groupCaps)
	for _, l := range batches {
		if l.left == 0 {
			continue
		}
		most := g.a.w.topology.MaxPodsByHostRules(l.view,
			podtopology.HostSite{Count: podtopology.NoneLeft, Anti: podtopology.NoneLeft, Total: g.a.total})
		id := alike{g.prices.classOf(l.view.Class, l.pins), l.admit}
		if i, ok := ids[id]; ok {
			it := &g.items[i]
			it.batches, it.caps = append(it.batches, l), append(it.caps, most)
			continue
		}
		ids[id] = len(g.items)
		g.items = append(g.items, g.memory.newGroup(id.class, l, most))
		g.filler.Need = append(g.filler.Need, classes[id.class].Need...)
		g.filler.Group = append(g.filler.Group, classes[id.class].Group)
	}
	g.filler.Value = make([]float64, len(g.items))
	g.findCandidates(offers, g.prices.scaleUnits())
}

// findCandidates finds the offers that hold pods of some group.
func (g *priceGuide) findCandidates(offers []*capacity.Offering, units []float64) {
	m := g.memory
	m.reserveCandidates(len(offers), len(units))
	g.cands = m.list
	for at, o := range offers {
		m.reserveItems(len(g.items))
		from := len(m.items)
		for i, it := range g.items {
			if n := g.fitCount(it.batches[0], at, o); n > 0 {
				m.items, m.fits = append(m.items, int32(i)), append(m.fits, n)
			}
		}
		if to := len(m.items); to > from {
			m.all[at] = candidate{index: at, offer: o, room: m.scaleRoom(o.Room, units), items: m.items[from:to:to],
				fits: m.fits[from:to:to]}
			g.cands = append(g.cands, &m.all[at])
		}
	}
}

// FitCount is how many pods of the batch alone a node of the offer, which is at this place among those asked, holds.
func (g *priceGuide) fitCount(l *podBatch, at int, o *capacity.Offering) int {
	if g.fits != nil {
		return g.fits(l, at)
	}
	if n := capacity.FitCount(l.view.Class.Need, o.Room); n > 0 && o.FirstAlternative(l.admit) >= 0 {
		return n
	}
	return 0
}

// countRemaining counts what is left; false when nothing is.
func (g *priceGuide) countRemaining() bool {
	some := false
	for i := range g.items {
		it := &g.items[i]
		it.left, it.all = 0, 0
		for j, l := range it.batches {
			it.all += l.left
			it.left += min(l.left, it.caps[j])
		}
		some = some || it.all > 0
	}
	return some
}

// repriceRemaining asks what the pods that are left are worth while that part of the hosts is empty.
func (g *priceGuide) repriceRemaining(hosts float64) {
	classes, _ := g.prices.priceClasses()
	count := make([]float64, len(classes))
	for _, it := range g.items {
		count[it.class] += float64(it.all)
	}
	g.setValues(g.prices.reprice(count, hosts))
}

// setValues gives pods the values.
func (g *priceGuide) setValues(values classValues) {
	g.fresh, g.moved = true, true
	for i := range g.items {
		it := &g.items[i]
		it.value = max(values.ofBatch(it.batches[0]), leastValue*it.batches[0].least)
		g.filler.Value[i] = it.value
		for _, l := range it.batches {
			l.value = it.value
		}
	}
}

// remainingWorth is what all pods that are left are worth.
func (g *priceGuide) remainingWorth() float64 {
	sum := 0.0
	for _, it := range g.items {
		sum += float64(it.all) * it.value
	}
	return sum
}

// leastCost is what new nodes for all that is left cost at least: no candidate holds more worth for its price, with
// fractions of pods, than the best of them did when it was asked last.
func (g *priceGuide) leastCost() float64 {
	if len(g.active) == 0 {
		return 0
	}
	return g.remainingWorth() * g.active[0].score
}

// bestCandidate returns the candidate whose node would hold the most worth for its price, and what it would hold.
func (g *priceGuide) bestCandidate(sift bool) (*candidate, []batchTake) {
	g.scoreAgain(sift)
	return g.bestOfActive()
}

// scoreAgain asks all candidates when they are sifted, or the active ones when values are new.
func (g *priceGuide) scoreAgain(sift bool) {
	if sift {
		g.refreshCandidates()
		g.moved = false
	} else if g.fresh {
		for _, c := range g.active {
			g.scoreCandidate(c)
		}
		slices.SortFunc(g.active, betterScore)
	}
	g.fresh = false
}

// bestOfActive is the best of the active candidates with whole pods. Scores get worse only while values stay, so
// candidates whose old score is no match for what was found need no second look.
func (g *priceGuide) bestOfActive() (*candidate, []batchTake) {
	var best *candidate
	var takes []batchTake
	score := math.Inf(1)
	for i, c := range g.active {
		if i >= looks || c.score >= score {
			break
		}
		g.scoreCandidate(c)
		t, value := g.fillWholePods(c)
		if value > 0 && g.a.offerCost(c.offer)/value < score {
			best, takes, score = c, t, g.a.offerCost(c.offer)/value
		}
	}
	slices.SortFunc(g.active, betterScore)
	return best, takes
}

// refreshCandidates asks all candidates, or all hopeful ones, and keeps those of the best scores. Of those that can be
// no better than so many others and are not hopeful it is enough to know that.
func (g *priceGuide) refreshCandidates() {
	g.active = g.active[:0]
	bar := math.Inf(1) // of the scores so far, that of the last that is kept
	for _, c := range g.cands {
		if g.sifts%thorough != 0 && c.score >= hopeful {
			continue
		}
		if least := g.scoreLowerBound(c); least > bar && least >= hopeful {
			c.score = least
			continue
		}
		g.scoreCandidate(c)
		g.last = append(g.last[:0], g.filler.Price...)
		if g.active = append(g.active, c); len(g.active) >= 2*most {
			slices.SortFunc(g.active, betterScore)
			g.active = g.active[:most]
			bar = g.active[most-1].score
		}
	}
	g.sifts++
	slices.SortFunc(g.active, betterScore)
	if len(g.active) > most {
		g.active = g.active[:most]
	}
	g.last = g.last[:0]
}

// scoreLowerBound is no more than the score of the candidate, by what resources were worth on the one asked before.
func (g *priceGuide) scoreLowerBound(c *candidate) float64 {
	if len(g.last) == 0 {
		return 0
	}
	return g.a.offerCost(c.offer) / max(1e-12, g.filler.UpperBound(c.items, g.mostOf(c), c.room, g.last))
}

func betterScore(x, y *candidate) int {
	return cmp.Or(cmp.Compare(x.score, y.score), cmp.Compare(x.index, y.index))
}

// scoreCandidate finds the best fill of the candidate with fractions of pods, and scores it by what it costs for what
// that is worth.
func (g *priceGuide) scoreCandidate(c *candidate) {
	worth := g.filler.Fill(c.items, g.mostOf(c), c.room, &c.basis)
	if c.host == nil {
		c.score = g.a.offerCost(c.offer) / max(1e-12, worth)
	}
}

// mostOf is how many of each of its items the candidate can hold, valid until the next call.
func (g *priceGuide) mostOf(c *candidate) []float64 {
	g.most = g.most[:0]
	for i, it := range c.items {
		g.most = append(g.most, float64(min(g.items[it].left, c.fits[i])))
	}
	return g.most
}

// rankedItem is an item with how many pods of it come first, and what they are worth for what they take.
type rankedItem struct {
	item    int32
	first   int
	density float64
}

// fillWholePods tells what whole pods a new node of the candidate's offer would hold, beginning with the fill the
// filler found last.
func (g *priceGuide) fillWholePods(c *candidate) ([]batchTake, float64) {
	list := g.memory.ranked[:0]
	for i, id := range c.items {
		if g.items[id].left == 0 {
			continue
		}
		cost := 1e-9
		for r, x := range g.filler.Need[int(id)*len(c.room) : (int(id)+1)*len(c.room)] {
			cost += g.filler.Price[r] * x
		}
		list = append(list, rankedItem{id, int(g.filler.N[i] + 1e-6), g.items[id].value / cost})
	}
	g.memory.ranked = list
	slices.SortFunc(list, func(x, y rankedItem) int {
		return cmp.Or(cmp.Compare(y.density, x.density), cmp.Compare(x.item, y.item))
	})
	d := draftOfCandidate(g.a, c)
	for _, x := range list {
		n := x.first
		for _, l := range g.items[x.item].batches {
			if n > 0 && l.left > 0 && !l.whole {
				n -= d.takePods(l, n)
			}
		}
	}
	for round := 0; round == 0 || round == 1 && d.near; round++ {
		for _, x := range list {
			need := g.items[x.item].batches[0].view.Class.Need
			for _, l := range g.items[x.item].batches {
				if capacity.FitCount(need, d.room) == 0 {
					break
				}
				d.takePods(l, l.left)
			}
		}
	}
	return d.takes, d.value
}
