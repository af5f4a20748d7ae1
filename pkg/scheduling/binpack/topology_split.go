package binpack

import (
	"cmp"
	"slices"
)

// podSplit divides the pods of a view over the domains of all keys that concern it.
type podSplit struct {
	dd   *domainDivision
	view *relaxedPod
	keys []string
	left int    // pods without a domain
	why  string // the next of them has none
}

// splitPart is the pods that are tied to the same domains of the first keys.
type splitPart struct {
	pins    []domainPin
	pods    int           // of all keys
	choice  *domainChoice // of the next key, once asked
	away    float64       // the price where no node has its label, noPrice where the pods cannot be there
	parts   []*splitPart  // by domain of it
	outside *splitPart
}

// splitByDomains divides so many pods of the view over the domains of the keys, one pod after the other. Each goes
// where the rules over every key let it, so that the pods could come in that very order.
func (dd *domainDivision) splitByDomains(v *relaxedPod, pods int) []*podBatch {
	s := &podSplit{dd: dd, view: v, keys: dd.top.keysOf(v), left: pods}
	if len(s.keys) > 0 {
		dd.a.w.faults.planted(StageDomains, v.class, nil)
	}
	all := &splitPart{}
	for s.left > 0 && s.giveDomains(all) {
		s.left, s.why = s.left-1, ""
	}
	if s.left > 0 {
		dd.a.blocked[v.class.id][s.why] = true
	}
	return all.batches(v)
}

// giveDomains gives the next pod of the part a domain of each key that is left. False when the rules leave none.
func (s *podSplit) giveDomains(p *splitPart) bool {
	if len(p.pins) == len(s.keys) {
		p.pods++
		return true
	}
	s.ask(p)
	c := p.choice
	c.left = s.left
	var passed []int // domains in which those of the next keys have no place
	var most []int
	defer func() {
		for i, d := range passed {
			c.most[d] = most[i]
		}
	}()
	for {
		d := s.dd.chooseDomain(s.view, *c)
		if p.away < noPrice && (d < 0 || p.away < c.open[d]) && s.giveDomains(p.outside) {
			return true
		}
		if d < 0 {
			s.why = cmp.Or(s.why, s.dd.whyDivided(s.view, *c)) // what comes first is the nearest to a place
			return false
		}
		if p.parts[d] == nil {
			p.parts[d] = &splitPart{pins: append(slices.Clone(p.pins), domainPin{c.key, s.dd.top.domains[c.key][d]})}
		}
		if s.giveDomains(p.parts[d]) {
			s.count(c, d)
			return true
		}
		passed, most = append(passed, d), append(most, c.most[d])
		c.most[d] = 0
	}
}

// ask finds what the domains of the next key have for the part.
func (s *podSplit) ask(p *splitPart) {
	if p.choice != nil {
		return
	}
	key := s.keys[len(p.pins)]
	rules := s.view.rulesFor(key)
	c := s.dd.choiceOf(&podBatch{view: s.view, pins: p.pins, left: s.left}, key, rules)
	p.choice, p.away, p.parts = &c, noPrice, make([]*splitPart, len(s.dd.top.domains[key]))
	if outside := append(slices.Clone(p.pins), domainPin{key, ""}); len(rules) == 0 && !onEveryNode(key) {
		p.away, p.outside = s.dd.pk.minPriceToReach(s.view, outside), &splitPart{pins: outside}
	}
}

// count counts a pod in a domain that it was given.
func (s *podSplit) count(c *domainChoice, d int) {
	k := s.view.class
	c.room[d]--
	c.most[d]--
	s.dd.given[classDomain{k.id, c.key, s.dd.top.domains[c.key][d]}]++
	for _, i := range k.matched {
		if s.dd.top.counters[i].key == c.key {
			s.dd.tally.count[i][d]++
		}
	}
	for _, r := range c.rules {
		switch {
		case r.what == avoid && r.required:
			s.dd.tally.anti[r.counter][d]++
		case r.what == spread && r.required:
			s.dd.tally.even[r.counter][d]++
		}
	}
}

// batches are the batches of the part, each tied to its domains.
func (p *splitPart) batches(v *relaxedPod) []*podBatch {
	var out []*podBatch
	if p.pods > 0 {
		out = append(out, &podBatch{view: v, pins: p.pins, left: p.pods})
	}
	for _, part := range append([]*splitPart{p.outside}, p.parts...) {
		if part != nil {
			out = append(out, part.batches(v)...)
		}
	}
	return out
}
