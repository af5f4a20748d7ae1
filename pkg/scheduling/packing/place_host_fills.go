package packing

import "joiner.sh/pkg/scheduling/capacity"

// fillHostsByPrices fills the hosts with those of the batches that are worth the most together, by what they would cost
// on new nodes.
func (pk *packing) fillHostsByPrices(batches []*PodBatch) {
	a := pk.a
	prices, raised := podPricesFor(a), false
	if fills := a.Strategy.HostFills; fills != nil && !a.Strategy.RepricesHosts {
		prices, raised = fills.Prices, true // most of the room is full by these, which are better than new ones
	}
	g := NewPriceGuide(a, prices)
	NodeOpener{A: a}.setPodValues(nil, true, batches)
	g.PrepareGroups(nil, batches)
	var hosts []*Candidate
	for i, b := range a.Bins {
		if b.Offer == nil {
			may := func(l *PodBatch) bool { return b.AlternativeFor(l.Admit) >= 0 }
			if c := g.HostCandidate(i, b, may); len(c.items) > 0 {
				hosts = append(hosts, c)
			}
		}
	}
	if raised {
		g.setValues(prices.Values())
	}
	every := max(1, len(hosts)/repriceHosts)
	for i, c := range hosts {
		if !g.CountRemaining() {
			return
		}
		if i%every == 0 && !raised {
			g.repriceRemaining(float64(len(hosts)-i) / float64(len(hosts)))
		}
		g.ScoreCandidate(c)
		takes, _ := g.FillWholePods(c)
		for _, t := range takes {
			a.placePods(t.Batch, c.host, t.Alt, t.N)
		}
	}
}

// HostCandidate is the host with what may be on it.
func (g *PriceGuide) HostCandidate(i int, b *capacity.Bin, may func(*PodBatch) bool) *Candidate {
	c := &Candidate{index: i, host: b, room: ScaleNeed(b.Room, g.prices.ScaleUnits())}
	for i, it := range g.Items {
		l := it.Batches[0]
		if n := capacity.FitCount(l.View.Class.Need, b.Room); n > 0 && may(l) {
			c.items, c.fits = append(c.items, int32(i)), append(c.fits, n)
		}
	}
	return c
}

// repriceHosts is how often the pods that are left are priced anew while hosts are filled.
const repriceHosts = 10

// placeHostFills puts pods of the batches on the hosts as far as the strategy says how many of which each should take.
func (pk *packing) placeHostFills(batches []*PodBatch) {
	a := pk.a
	fills, byClass := a.Strategy.HostFills, map[int32][]*PodBatch{}
	if pk.filled == nil {
		pk.filled = make([]map[int32]int, len(fills.ByHost))
	}
	for _, l := range batches {
		c := fills.Prices.ClassOf(l.View.Class, l.Pins)
		byClass[c] = append(byClass[c], l)
	}
	for i, fill := range fills.ByHost {
		for j, c := range fill.Class {
			left := fill.Amount[j] - pk.filled[i][c]
			for _, l := range byClass[c] {
				if n := pk.joinBinUpTo(l, a.Bins[i], left); n > 0 {
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
func (pk *packing) joinBinUpTo(l *PodBatch, b *capacity.Bin, most int) int {
	a := pk.a
	n := min(l.Left, most, capacity.FitCount(l.View.Class.Need, b.Room))
	if n <= 0 || l.whole {
		return 0
	}
	alt := b.AlternativeFor(l.Admit)
	if n = min(n, a.W.Topology.MaxPodsByHostRules(l.View, a.SiteOf(b))); n <= 0 || alt < 0 {
		return 0
	}
	a.placePods(l, b, alt, n)
	return n
}
