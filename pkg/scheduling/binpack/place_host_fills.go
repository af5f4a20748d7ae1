package binpack

import "joiner.sh/pkg/scheduling/capacity"

// fillHostsByPrices fills the hosts with those of the batches that are worth the most together, by what they would cost
// on new nodes.
func (pk *packing) fillHostsByPrices(batches []*podBatch) {
	a := pk.a
	prices, raised := podPricesFor(a), false
	if fills := a.strategy.hostFills; fills != nil && !a.strategy.repricesHosts {
		prices, raised = fills.prices, true // most of the room is full by these, which are better than new ones
	}
	g := newPriceGuide(a, prices)
	nodeOpener{a: a}.setPodValues(nil, true, batches)
	g.prepareGroups(nil, batches)
	var hosts []*candidate
	for i, b := range a.bins {
		if b.Offer == nil {
			may := func(l *podBatch) bool { return b.AlternativeFor(l.admit) >= 0 }
			if c := g.hostCandidate(i, b, may); len(c.items) > 0 {
				hosts = append(hosts, c)
			}
		}
	}
	if raised {
		g.setValues(prices.values())
	}
	every := max(1, len(hosts)/repriceHosts)
	for i, c := range hosts {
		if !g.countRemaining() {
			return
		}
		if i%every == 0 && !raised {
			g.repriceRemaining(float64(len(hosts)-i) / float64(len(hosts)))
		}
		g.scoreCandidate(c)
		takes, _ := g.fillWholePods(c)
		for _, t := range takes {
			a.placePods(t.batch, c.host, t.alt, t.n)
		}
	}
}

// hostCandidate is the host with what may be on it.
func (g *priceGuide) hostCandidate(i int, b *capacity.Bin, may func(*podBatch) bool) *candidate {
	c := &candidate{index: i, host: b, room: scaleNeed(b.Room, g.prices.scaleUnits())}
	for i, it := range g.items {
		l := it.batches[0]
		if n := capacity.FitCount(l.view.Class.Need, b.Room); n > 0 && may(l) {
			c.items, c.fits = append(c.items, int32(i)), append(c.fits, n)
		}
	}
	return c
}

// repriceHosts is how often the pods that are left are priced anew while hosts are filled.
const repriceHosts = 10

// placeHostFills puts pods of the batches on the hosts as far as the strategy says how many of which each should take.
func (pk *packing) placeHostFills(batches []*podBatch) {
	a := pk.a
	fills, byClass := a.strategy.hostFills, map[int32][]*podBatch{}
	if pk.filled == nil {
		pk.filled = make([]map[int32]int, len(fills.byHost))
	}
	for _, l := range batches {
		c := fills.prices.classOf(l.view.Class, l.pins)
		byClass[c] = append(byClass[c], l)
	}
	for i, fill := range fills.byHost {
		for j, c := range fill.Class {
			left := fill.Amount[j] - pk.filled[i][c]
			for _, l := range byClass[c] {
				if n := pk.joinBinUpTo(l, a.bins[i], left); n > 0 {
					left -= n
					pk.noteFilled(i, c, n)
				}
			}
		}
	}
}

// noteFilled remembers how many pods of a price class a host took.
func (pk *packing) noteFilled(host int, class int32, pods int) {
	if pk.filled[host] == nil {
		pk.filled[host] = map[int32]int{}
	}
	pk.filled[host][class] += pods
}

// joinBinUpTo puts pods of the batch on the host, at most so many, and returns how many.
func (pk *packing) joinBinUpTo(l *podBatch, b *capacity.Bin, most int) int {
	a := pk.a
	n := min(l.left, most, capacity.FitCount(l.view.Class.Need, b.Room))
	if n <= 0 || l.whole {
		return 0
	}
	alt := b.AlternativeFor(l.admit)
	if n = min(n, a.w.topology.MaxPodsByHostRules(l.view, a.siteOf(b))); n <= 0 || alt < 0 {
		return 0
	}
	a.placePods(l, b, alt, n)
	return n
}
