package binpack

import (
	"cmp"
	"math"
	"slices"

	"joiner/pkg/model/instancetypes"
)

// domainChoice is what the domains of a topology key have for a lot, and what was given to them so far.
type domainChoice struct {
	key   string
	rules []topologyRule
	open  []float64 // the price in each domain, noPrice where the pods cannot go
	home  []int     // the weights whose pools sell nodes there, 0 for the heaviest
	room  []int     // how many pods the hosts of each domain could take
	most  []int     // how many pods can go there, no limit where new nodes are for sale in any number
	tally domainCounts
	given map[classDomain]int
	left  int // how many pods have no domain yet
	// domains that others need more, see scarceDomains; nil for none
	scarce []bool
}

// dedicatedUSD is what EC2 asks for an hour in which a region has instances of dedicated tenancy. It is in no list of
// prices.
const dedicatedUSD = 2

// choiceOf is what the domains of the key have for the lot.
func (a *solution) choiceOf(l *podBatch, key string, rules []topologyRule) domainChoice {
	names := a.w.domains[key]
	c := domainChoice{key: key, rules: rules, open: make([]float64, len(names)), home: make([]int, len(names)),
		room: a.roomIn(l, key), most: make([]int, len(names))}
	for d, name := range names {
		pins := append(slices.Clone(l.pins), domainPin{key, name})
		c.most[d] = math.MaxInt
		if c.open[d] = a.minPriceToReach(l.view, pins); c.open[d] >= noPrice {
			continue
		}
		c.home[d] = a.w.homeIn(l.view, pins)
		if key == instancetypes.LabelTenancy && name == instancetypes.TenancyDedicated {
			c.open[d] += dedicatedUSD
		}
		if a.w.minPriceShare(l.view, pins) < noPrice {
			continue
		}
		if slots := a.slotsFor(l.view, pins); slots > 0 {
			c.most[d] = c.room[d] + slots
		}
	}
	return c
}

// openCount is in how many domains the pods can be.
func (c domainChoice) openCount() (n int) {
	for _, price := range c.open {
		if price < noPrice {
			n++
		}
	}
	return n
}

// chooseDomain returns the domain for one more pod of the view, -1 for none: the least crowded that the rules allow,
// among equals that of the heaviest pool, among those the cheapest. Pods that must be near each other stay where they
// are. For pods without rules of their own the pool's weight comes first.
func (a *solution) chooseDomain(v *relaxedPod, c domainChoice) int {
	best := -1
	var least domainScore
	gather := slices.ContainsFunc(c.rules, func(r topologyRule) bool { return r.what == follow })
	for d, price := range c.open {
		p := classDomain{v.kind.id, c.key, a.w.domains[c.key][d]}
		if limit, ok := a.caps[p]; price >= noPrice || c.most[d] <= 0 || ok && a.landed[p]+c.given[p] >= limit ||
			!a.rulesAllowDomain(v, c, d) {
			continue
		}
		s := domainScore{home: c.home[d], crowd: a.podCount(v, c, d), price: price}
		if gather {
			s.crowd, s.short, s.room = -s.crowd, max(0, c.left-c.most[d]), -c.room[d]
		}
		if c.room[d] > 0 {
			s.home, s.price = -1, 0
		}
		if len(c.rules) == 0 {
			s.first, s.breaks = s.home, a.brokenSpreads(v, c, d)
		}
		if s.breaks > 0 {
			s.crowd, s.room = 0, -c.room[d]
		}
		s.scarce = c.scarce != nil && c.scarce[d]
		s.unwanted = !a.wanted[p] || a.landed[p]+c.given[p] > 0
		s.away = v.together && c.given[p] == 0
		if best < 0 || s.lessThan(least) {
			best, least = d, s
		}
	}
	return best
}

// domainScore is what speaks for a domain, the less the better.
type domainScore struct {
	away                            bool // from pods with which it must share a node
	unwanted                        bool // no pods wait for one to be there, see wantFollowed
	scarce                          bool // see scarceDomains
	breaks                          int  // see brokenSpreads
	first, crowd, short, room, home int
	price                           float64
}

func (s domainScore) lessThan(o domainScore) bool {
	if s.away != o.away {
		return o.away
	}
	if s.unwanted != o.unwanted {
		return o.unwanted
	}
	if s.scarce != o.scarce {
		return o.scarce
	}
	return cmp.Or(cmp.Compare(s.first, o.first), cmp.Compare(s.breaks, o.breaks), cmp.Compare(s.crowd, o.crowd),
		cmp.Compare(s.short, o.short), cmp.Compare(s.room, o.room), cmp.Compare(s.home, o.home),
		cmp.Compare(s.price, o.price)) < 0
}

// brokenSpreads is 2 if one more pod of the view in domain d would be more than the required spread of pods allows that
// are given that domain, 1 if there are too many already, and 0 if all is well.
func (a *solution) brokenSpreads(v *relaxedPod, c domainChoice, d int) int {
	worst := 0
	for _, i := range v.kind.matched {
		if a.w.counters[i].key != c.key || c.tally.even[i][d] == 0 {
			continue
		}
		count, r := c.tally.count[i], a.w.strictestSpread(i)
		switch over := count[d] + 1 - a.w.eligibleDomains(r).Least(count) - r.maxSkew; {
		case over == 1:
			return 2
		case over > 1:
			worst = 1
		}
	}
	return worst
}

// strictestSpread is the required spread with the counter that allows least.
func (w *problem) strictestSpread(counter int) topologyRule {
	if w.spreads != nil {
		return w.spreads[counter]
	}
	w.spreads = make([]topologyRule, len(w.counters))
	for _, k := range w.kinds {
		for _, r := range k.lastRelaxation().other {
			s := &w.spreads[r.counter]
			if r.what == spread && r.required && (s.maxSkew == 0 || r.maxSkew < s.maxSkew) {
				*s = r
			}
		}
	}
	return w.spreads[counter]
}

// podCount is how many pods that matter to the view are in the domain: those its spreads and affinities count, or,
// unless it gathers, without any those that others' spreads count with it.
func (a *solution) podCount(v *relaxedPod, c domainChoice, d int) int {
	n := 0
	for _, r := range c.rules {
		if r.what != avoid {
			n += c.tally.count[r.counter][d]
		}
	}
	if n > 0 || len(c.rules) > 0 || a.gathers(v) {
		return n
	}
	for _, i := range v.kind.matched {
		if x := a.w.counters[i]; x.key == c.key && x.spread {
			n += c.tally.count[i][d]
		}
	}
	return n
}
