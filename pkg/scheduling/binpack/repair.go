package binpack

import "slices"

// rememberFailedDomains notes how many pods each domain was given in vain.
func (a *solution) rememberFailedDomains(lots []*podBatch) {
	for _, l := range lots {
		if l.left == 0 {
			continue
		}
		for _, p := range a.pinsToBlame(l) {
			a.stuck[classDomain{l.view.kind.id, p.key, p.domain}] += l.left
		}
	}
}

// pinsToBlame are the pins of a lot that found no place: those beside which the pods can be in another domain too, all
// when there is none.
func (a *solution) pinsToBlame(l *podBatch) []domainPin {
	if len(l.pins) < 2 {
		return l.pins
	}
	out := slices.DeleteFunc(slices.Clone(l.pins), func(p domainPin) bool {
		return !slices.ContainsFunc(a.w.domains[p.key], func(d string) bool {
			return d != p.domain && a.minPriceToReach(l.view, []domainPin{{p.key, d}}) < noPrice
		})
	})
	if len(out) == 0 {
		return l.pins
	}
	return out
}

// lowerDomainCaps lowers the caps of domains that could not take what they were given; false when there is nothing to
// learn.
func (a *solution) lowerDomainCaps(caps map[classDomain]int) bool {
	learned := false
	for _, k := range a.w.kinds {
		for _, key := range a.w.keysOf(k.lastRelaxation()) {
			names := a.w.domains[key]
			for _, d := range names {
				p := classDomain{k.id, key, d}
				if a.stuck[p] == 0 || len(names) < 2 {
					continue
				}
				if limit, ok := caps[p]; !ok || a.landed[p] < limit {
					caps[p] = a.landed[p]
					learned = true
				}
			}
		}
	}
	for _, b := range a.bins {
		for _, l := range b.load {
			for _, r := range l.view.other {
				p := classDomain{l.view.kind.id, r.key, b.domainOf(r.key)}
				if limit, ok := caps[p]; a.lacksAffinityPods(b, r) && (!ok || limit > 0) {
					caps[p] = 0
					learned = true
				}
			}
		}
	}
	return learned || a.learnCrowded(caps)
}

// learnCrowded lowers the caps of domains that pods without a spread of their own have filled beyond what the spread of
// others allows, so that these go elsewhere; false when there is nothing to learn.
func (a *solution) learnCrowded(caps map[classDomain]int) bool {
	learned := false
	for _, b := range a.bins {
		for _, l := range b.load {
			for _, r := range l.view.other {
				over := a.beyond(b, l, r)
				p := classDomain{l.view.kind.id, r.key, b.domainOf(r.key)}
				most := max(0, a.landed[p]-over)
				if limit, ok := caps[p]; over > 0 && (!ok || most < limit) {
					caps[p] = most
					learned = true
				}
			}
		}
	}
	return learned
}

// learnTurns lowers how many pods of each kind are divided at all, where the kind spreads and limits left some of them
// without the nodes they were to have; false when there is nothing to learn.
func (a *solution) learnTurns(caps map[classDomain]int) bool {
	if !a.mayBeLimited() {
		return false
	}
	learned := false
	for _, k := range a.w.kinds {
		short := slices.ContainsFunc(a.w.keysOf(k.lastRelaxation()), func(key string) bool {
			return slices.ContainsFunc(a.w.domains[key],
				func(d string) bool { return a.stuck[classDomain{k.id, key, d}] > 0 })
		})
		spreads := func(r topologyRule) bool { return r.what == spread && r.required }
		if !short || !slices.ContainsFunc(k.lastRelaxation().other, spreads) {
			continue
		}
		p, placed := classDomain{kind: k.id}, len(k.pods)-len(a.rest[k.id])
		if limit, ok := caps[p]; !ok || placed < limit {
			caps[p] = placed
			learned = true
		}
	}
	return learned
}

// lacksAffinityPods reports whether the rule wants pods near that in the end found no room in the bin's domain.
func (a *solution) lacksAffinityPods(b *bin, r topologyRule) bool {
	d, ok := a.w.domainIDs[r.key][b.domainOf(r.key)]
	return r.what == follow && r.required && ok && a.tally.count[r.counter][d] == 0
}

// trimBrokenRules takes pods out of new nodes where a rule would be broken because others stayed without a home.
func (a *solution) trimBrokenRules() {
	for again := true; again; {
		again = false
		for _, b := range slices.Backward(a.bins) {
			for i := len(b.load) - 1; i >= 0; i-- {
				if n := a.spreadExcess(b, b.load[i]); n > 0 {
					a.takeOut(b, i, n, "its spread or affinity would be broken, because too few pods found room in other domains")
					again = true
				}
			}
		}
	}
	a.bins = slices.DeleteFunc(a.bins, func(b *bin) bool { return b.offer != nil && len(b.load) == 0 })
}

// spreadExcess is how many pods of the load stand beyond what their spreads allow.
func (a *solution) spreadExcess(b *bin, l podLoad) int {
	n := 0
	if l.settled {
		return 0
	}
	for _, r := range l.view.other {
		n = max(n, a.beyond(b, l, r))
		if a.lacksAffinityPods(b, r) {
			n = len(l.pods)
		}
	}
	return min(n, len(l.pods))
}

// beyond is by how many pods the bin's domain has more than the rule allows, if it is a spread that the load must keep.
func (a *solution) beyond(b *bin, l podLoad, r topologyRule) int {
	d, ok := a.w.domainIDs[r.key][b.domainOf(r.key)]
	if l.settled || r.what != spread || !r.self || !r.required || !ok {
		return 0
	}
	return a.w.eligibleDomains(r).Over(a.tally.count[r.counter], d, 0)
}

// takeOut takes the last n pods of the bin's load i out of it, and says why.
func (a *solution) takeOut(b *bin, i, n int, why string) {
	l := &b.load[i]
	k := l.view.kind
	keep := len(l.pods) - n
	b.paid = 0
	a.rest[k.id] = append(slices.Clone(a.rest[k.id]), l.pods[keep:]...)
	for j, x := range k.need {
		b.room[j] += x * int64(n)
	}
	for _, c := range k.matched {
		key := a.w.counters[c].key
		if d, ok := a.w.domainIDs[key][b.domainOf(key)]; ok && key != labelHost && a.w.countsOn(c, b) {
			a.tally.count[c][d] -= n
		}
	}
	a.blocked[k.id][why] = true
	if l.pods = l.pods[:keep]; keep == 0 {
		b.load = slices.Delete(b.load, i, i+1)
	}
}
