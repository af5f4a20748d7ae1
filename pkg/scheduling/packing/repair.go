package packing

import (
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
)

// lowerDomainCaps lowers the caps of domains that could not take what they were given; false when there is nothing to
// learn.
func (ls *lessons) lowerDomainCaps(pk *packing) bool {
	stuck, alone := ls.lowerStuck(pk), ls.lowerLonely(pk.a)
	return stuck || alone || ls.learnCrowded(pk.a)
}

// lowerStuck lowers the caps of domains that took fewer pods than they were given.
func (ls *lessons) lowerStuck(pk *packing) bool {
	learned := false
	for _, class := range pk.a.W.Classes.List {
		for _, key := range pk.a.W.Topology.KeysOf(class.LastRelaxation()) {
			names := pk.a.W.Topology.Domains[key]
			for _, d := range names {
				p := classDomain{class.ID, key, d}
				if pk.stuck[p] > 0 && len(names) > 1 && ls.lowerCap(p, pk.a.landed[p]) {
					learned = true
				}
			}
		}
	}
	return learned
}

// lowerLonely keeps pods out of domains in which nobody is whom they have to be near to.
func (ls *lessons) lowerLonely(s *Solution) bool {
	learned, came := false, s.arrivals()
	for _, b := range s.Bins {
		for _, l := range b.Load {
			for _, r := range l.Pod.DomainRules {
				p := classDomain{l.Pod.Class.ID, r.Key, b.DomainOf(r.Key)}
				if came.lack(b, r) && ls.lowerCap(p, 0) {
					learned = true
				}
			}
		}
	}
	return learned
}

// learnCrowded lowers the caps of domains that pods without a spread of their own have filled beyond what the spread of
// others allows, so that these go elsewhere; false when there is nothing to learn.
func (ls *lessons) learnCrowded(s *Solution) bool {
	learned := false
	for _, b := range s.Bins {
		for _, l := range b.Load {
			for _, r := range l.Pod.DomainRules {
				p := classDomain{l.Pod.Class.ID, r.Key, b.DomainOf(r.Key)}
				if over := s.beyond(b, l, r); over > 0 && ls.lowerCap(p, max(0, s.landed[p]-over)) {
					learned = true
				}
			}
		}
	}
	return learned
}

// learnTurns lowers how many pods of each class are divided at all, where the class spreads and limits left some of
// them without the nodes they were to have; false when there is nothing to learn.
func (ls *lessons) learnTurns(pk *packing) bool {
	s, learned := pk.a, false
	if !s.MayBeLimited() {
		return false
	}
	for _, class := range s.W.Classes.List {
		short := slices.ContainsFunc(s.W.Topology.KeysOf(class.LastRelaxation()), func(key string) bool {
			return slices.ContainsFunc(s.W.Topology.Domains[key],
				func(d string) bool { return pk.stuck[classDomain{class.ID, key, d}] > 0 })
		})
		spreads := func(r podclass.TopologyRule) bool { return r.Kind == podclass.Spread && r.Required }
		if short && slices.ContainsFunc(class.LastRelaxation().DomainRules, spreads) &&
			ls.lowerCap(classDomain{Class: class.ID}, len(class.Pods)-len(s.Rest[class.ID])) {
			learned = true
		}
	}
	return learned
}

// noteScattered notes the groups of pods that had to be near each other on one node and were not all placed: another
// solution puts each group on its node before anything else. False when there is nothing new to note.
func (ls *lessons) noteScattered(s *Solution) bool {
	found := false
	for i, class := range s.W.Classes.List {
		if len(s.Rest[i]) == 0 || !s.W.Catalog.ForSome(class.LastRelaxation()) {
			continue
		}
		for _, r := range class.LastRelaxation().HostRules {
			if r.Kind == podclass.Follow && !ls.groups[r.Counter] {
				ls.groups[r.Counter] = true
				found = true
			}
		}
	}
	return found
}

// wantFollowed notes for pods that have to be near others and stayed without a place, because no other was where they
// can be, the cheapest domain in which both can be: another solution puts one of the others there. False when there is
// nothing new to note.
func (ls *lessons) wantFollowed(pk *packing) bool {
	learned := false
	for _, class := range pk.a.W.Classes.List {
		if len(pk.a.Rest[class.ID]) == 0 || class.Stays {
			continue
		}
		for _, r := range class.LastRelaxation().DomainRules {
			if r.Kind != podclass.Follow || !r.Required {
				continue
			}
			if p, ok := ls.meetingPlace(pk, class, r); ok {
				ls.wanted[p] = true
				learned = true
			}
		}
	}
	return learned
}

// meetingPlace is the cheapest domain that has no pod which the rule of the class wants near, and could have one, with
// the class of that pod; false when there is none but those that are wanted already or could not take such a pod.
func (ls *lessons) meetingPlace(pk *packing, class *podclass.Class, r podclass.TopologyRule) (best classDomain,
	ok bool) {
	least := capacity.NoPrice
	for d, name := range pk.a.W.Topology.Domains[r.Key] {
		at := []podclass.DomainPin{{Key: r.Key, Domain: name}}
		if pk.a.Tally.Count[r.Counter][d] > 0 {
			continue
		}
		price := pk.minPriceToReach(class.LastRelaxation(), at)
		if price >= least {
			continue
		}
		i := slices.IndexFunc(pk.a.W.Classes.List, func(o *podclass.Class) bool {
			return o != class && slices.Contains(o.Matched, r.Counter) &&
				placementRank(o.LastRelaxation()) <= rankFree &&
				slices.Contains(pk.a.W.Topology.KeysOf(o.LastRelaxation()), r.Key) &&
				pk.minPriceToReach(o.LastRelaxation(), at) < capacity.NoPrice
		})
		if i < 0 {
			continue
		}
		if p := (classDomain{i, r.Key, name}); !ls.wanted[p] && pk.stuck[p] == 0 {
			best, least, ok = p, price, true
		}
	}
	return best, ok
}

// rememberFailedDomains notes how many pods each domain was given in vain in the last round, and, of classes that were
// given none then, in the rounds before.
func (pk *packing) rememberFailedDomains(last, earlier []*PodBatch) {
	given := map[*podclass.Class]bool{}
	for _, batch := range last {
		given[batch.View.Class] = true
		pk.rememberFailed(batch)
	}
	for _, batch := range earlier {
		if class := batch.View.Class; len(pk.a.Rest[class.ID]) > 0 && !given[class] {
			pk.rememberFailed(batch)
		}
	}
}

func (pk *packing) rememberFailed(batch *PodBatch) {
	if batch.Left == 0 {
		return
	}
	for _, p := range pk.pinsToBlame(batch) {
		pk.stuck[classDomain{batch.View.Class.ID, p.Key, p.Domain}] += batch.Left
	}
}

// pinsToBlame are the pins of a batch that found no place: those beside which the pods can be in another domain too,
// all when there is none.
func (pk *packing) pinsToBlame(batch *PodBatch) []podclass.DomainPin {
	if len(batch.Pins) < 2 {
		return batch.Pins
	}
	out := slices.DeleteFunc(slices.Clone(batch.Pins), func(p podclass.DomainPin) bool {
		return !slices.ContainsFunc(pk.a.W.Topology.Domains[p.Key], func(d string) bool {
			return d != p.Domain && pk.minPriceToReach(batch.View,
				[]podclass.DomainPin{{Key: p.Key, Domain: d}}) < capacity.NoPrice
		})
	})
	if len(out) == 0 {
		return batch.Pins
	}
	return out
}

// trimBrokenRules takes pods out of new nodes where a rule would be broken because others stayed without a home.
func (s *Solution) trimBrokenRules() {
	for again := true; again; {
		again = false
		came := s.arrivals()
		for _, b := range slices.Backward(s.Bins) {
			for i := len(b.Load) - 1; i >= 0; i-- {
				if n := s.excess(b, b.Load[i], came); n > 0 {
					s.TakeOut(b, i, n, "its spread or affinity would be broken, because too few pods found room in other domains")
					again = true
				}
			}
		}
	}
	s.Bins = slices.DeleteFunc(s.Bins, func(b *capacity.Bin) bool { return b.Offering != nil && len(b.Load) == 0 })
}

// excess returns how many pods of the load stand beyond what their spreads allow, or can never come there.
func (s *Solution) excess(b *capacity.Bin, l capacity.PodLoad, came *arrivals) int {
	n := 0
	if l.Settled {
		return 0
	}
	for _, r := range l.Pod.DomainRules {
		n = max(n, s.beyond(b, l, r))
	}
	if slices.ContainsFunc(l.Pod.Class.RequiredAffinityRules(),
		func(r podclass.TopologyRule) bool { return came.lack(b, r) }) {
		return len(l.Pods)
	}
	return min(n, len(l.Pods))
}

// beyond returns how many pods the bin's domain has above what the rule allows, if it is a spread that the load must
// keep. It is all of the load where the spread counts others alone, which may come before it.
func (s *Solution) beyond(b *capacity.Bin, l capacity.PodLoad, r podclass.TopologyRule) int {
	d, ok := s.W.Topology.DomainIDs[r.Key][b.DomainOf(r.Key)]
	if l.Settled || r.Kind != podclass.Spread || !r.Required || !ok {
		return 0
	}
	over := s.W.Topology.EligibleDomains(r).Over(s.Tally.Count[r.Counter], d, 0)
	if over > 0 && !r.Self {
		return len(l.Pods)
	}
	return over
}
