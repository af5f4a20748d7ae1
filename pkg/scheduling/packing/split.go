package packing

import (
	"maps"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
)

// splitByDomains divides so many pods of the view over the domains of the keys, one pod after the other. Each goes
// where the rules over every key let it, so that the pods could come in that very order. Where that leaves pods that
// have rules over several keys, another try saves domains for those that have no other.
func (dd *domainDivision) splitByDomains(pod *podclass.RelaxedPod, pods int) *podSplit {
	s := &podSplit{dd: dd, view: pod, keys: dd.top.KeysOf(pod), all: &splitPart{}, left: pods}
	if len(s.keys) > 0 {
		dd.a.W.Stages.Tell(cluster.StageDomains, pod.Class, "")
	}
	if len(s.keys) < 2 || pods < 2 {
		for s.giveNext() {
			dd.resumeHeld(pod.Class)
		}
		return s
	}
	again := *dd
	again.tally, again.given = dd.tally.Clone(), maps.Clone(dd.given)
	other := &podSplit{dd: &again, view: pod, keys: s.keys, all: &splitPart{}, left: pods, leaveScarce: true}
	for s.giveNext() {
	}
	if s.left > 0 {
		for other.giveNext() {
		}
	}
	if other.left < s.left {
		dd.tally.Become(again.tally)
		maps.Copy(dd.given, again.given)
		s, other.dd = other, dd
	}
	dd.resumeHeld(pod.Class)
	return s
}

// giveNext gives the next pod its domains. False when none is left, or the rules leave it none.
func (s *podSplit) giveNext() bool {
	if s.left == 0 || !s.giveDomains(s.all) {
		return false
	}
	s.left, s.why = s.left-1, ""
	return true
}

// spreadCounts reports whether a spread of the pods counts those of the class.
func (s *podSplit) spreadCounts(class *podclass.Class) bool {
	return slices.ContainsFunc(s.view.DomainRules,
		func(r podclass.TopologyRule) bool {
			return r.Kind == podclass.Spread && slices.Contains(class.Matched, r.Counter)
		})
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
	if s.leaveScarce && p.above != nil && c.scarce == nil {
		c.scarce = s.scarceDomains(p)
	}
	var passed []int // domains in which those of the next keys have no place
	var most []int
	defer func() {
		for i, d := range passed {
			c.most[d] = most[i]
		}
	}()
	for {
		d := s.dd.chooseDomain(s.view, *c)
		outside := d < 0 || p.away < c.open[d] && !s.dd.wanted(s.view, *c, d)
		if p.away < capacity.NoPrice && outside && s.giveDomains(p.outside) {
			return true
		}
		if d < 0 {
			if s.why == "" { // what comes first is the nearest to a place
				s.why = s.dd.whyDivided(s.view, *c)
			}
			return false
		}
		if s.giveDomains(s.partOf(p, d)) {
			s.count(c, d)
			return true
		}
		passed, most = append(passed, d), append(most, c.most[d])
		c.most[d] = 0
	}
}

// partOf is the part of those that are given domain d.
func (s *podSplit) partOf(p *splitPart, d int) *splitPart {
	if p.parts[d] == nil {
		key := p.choice.key
		p.parts[d] = &splitPart{above: p,
			pins: append(slices.Clone(p.pins), podclass.DomainPin{Key: key, Domain: s.dd.top.Domains[key][d]})}
	}
	return p.parts[d]
}

// scarceDomains tells the domains of the next key that the parts beside this one need more: they have fewer of them.
func (s *podSplit) scarceDomains(p *splitPart) []bool {
	out := make([]bool, len(p.choice.open))
	for d, price := range p.above.choice.open {
		beside := s.partOf(p.above, d)
		if price >= capacity.NoPrice || beside == p {
			continue
		}
		s.ask(beside)
		for i, price := range beside.choice.open {
			out[i] = out[i] || price < capacity.NoPrice && beside.choice.openCount() < p.choice.openCount()
		}
	}
	return out
}

// ask finds what the domains of the next key have for the part.
func (s *podSplit) ask(p *splitPart) {
	if p.choice != nil {
		return
	}
	key := s.keys[len(p.pins)]
	rules := s.view.RulesFor(key)
	c := s.dd.choiceOf(&PodBatch{View: s.view, Pins: p.pins, Left: s.left}, key, rules)
	p.choice, p.away, p.parts = &c, capacity.NoPrice, make([]*splitPart, len(s.dd.top.Domains[key]))
	tied := func(r podclass.TopologyRule) bool { return r.Kind != podclass.Avoid } // nobody is near where nothing is
	if !slices.ContainsFunc(rules, tied) && !podclass.OnEveryNode(key) {
		outside := append(slices.Clone(p.pins), podclass.DomainPin{Key: key, Domain: podclass.NoDomain})
		p.away, p.outside = s.dd.pk.minPriceToReach(s.view, outside), &splitPart{pins: outside}
	}
}

// count counts a pod in a domain that it was given.
func (s *podSplit) count(c *domainChoice, d int) {
	class := s.view.Class
	c.room[d]--
	c.most[d]--
	s.dd.given[classDomain{class.ID, c.key, s.dd.top.Domains[c.key][d]}]++
	for _, i := range class.Matched {
		if s.dd.top.Counters[i].Key == c.key {
			s.dd.tally.Count[i][d]++
		}
	}
	for _, r := range c.rules {
		switch {
		case r.Kind == podclass.Avoid && r.Required:
			s.dd.tally.Anti[r.Counter][d]++
		case r.Kind == podclass.Spread && r.Required:
			s.dd.tally.Even[r.Counter][d]++
		}
	}
}

// batches are the batches of the part, each tied to its domains.
func (p *splitPart) batches(pod *podclass.RelaxedPod) []*PodBatch {
	var out []*PodBatch
	if p.pods > 0 {
		out = append(out, &PodBatch{View: pod, Pins: p.pins, Left: p.pods})
	}
	for _, part := range append([]*splitPart{p.outside}, p.parts...) {
		if part != nil {
			out = append(out, part.batches(pod)...)
		}
	}
	return out
}
