package search

import (
	"maps"
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/podtopology"
)

const (
	// worthMoving is the part of a plan's price that another domain for a group has to save, as far as can be told, to
	// be tried; more of it for plans with many new nodes, which take longer to make.
	worthMoving, worthMovingMany = 0.003, 0.02
	// mostMoves is how often plans with very few new nodes are made anew for that; others once.
	mostMoves = 8
	// veryFewNodes is how many that are.
	veryFewNodes = 30
)

// coLocationGroup is pods that must be near each other in one domain of a key, and nobody is there yet who says in
// which.
type coLocationGroup struct {
	counter int
	key     string
	classes []*podclass.Class
}

// coLocationGroups are those of the pods that wait.
func coLocationGroups(top *podtopology.Counts) []coLocationGroup {
	var out []coLocationGroup
	at := map[int]int{}
	for _, k := range top.Classes.List {
		for _, r := range k.LastRelaxation().DomainRules {
			if r.Kind != podclass.Follow || !r.Required || !r.Self ||
				podtopology.SumCounts(top.Tally.Count[r.Counter]) > 0 {
				continue
			}
			if _, ok := at[r.Counter]; !ok {
				at[r.Counter] = len(out)
				out = append(out, coLocationGroup{counter: r.Counter, key: r.Key})
			}
			g := &out[at[r.Counter]]
			g.classes = append(g.classes, k)
		}
	}
	return out
}

// improveDomains tries other domains for groups that gather. The first plan puts each where its own nodes are the
// cheapest, but the room that other pods leave on theirs is known only once there is a plan. What comes out places as
// many pods for less.
func improveDomains(w *packing.Problem, best *packing.Solution, st pricedStrategy) *packing.Solution {
	groups := coLocationGroups(w.Topology)
	if len(groups) == 0 {
		return best
	}
	moves, worth := 1, worthMovingMany
	switch {
	case best.Used.Opened <= veryFewNodes:
		moves, worth = mostMoves, worthMoving
	case best.Used.Opened <= fewNodes:
		worth = worthMoving
	}
	tried := map[packing.ClassDomain]bool{}
	for range moves {
		next := st
		next.Guide, next.Caps = best.Strategy.Guide, maps.Clone(best.Strategy.Caps)
		if next.Caps == nil {
			next.Caps = map[packing.ClassDomain]int{}
		}
		moved := false
		for _, g := range groups {
			if to := g.betterDomain(best, worth, tried); to >= 0 {
				g.restrictToDomain(w, next.Caps, to)
				moved = true
				if moves > 1 {
					break // one after the other, for the next may want the same room
				}
			}
		}
		if !moved {
			break
		}
		if a := w.Pack(next.Strategy); a.PlacesMoreOrCostsLess(best) {
			best = a
		}
	}
	return best
}

// restrictToDomain leaves the group no other domain than this.
func (g coLocationGroup) restrictToDomain(w *packing.Problem, caps map[packing.ClassDomain]int, to int) {
	for d, name := range w.Topology.Domains[g.key] {
		for _, k := range g.classes {
			p := packing.ClassDomain{Class: k.ID, Key: g.key, Domain: name}
			if delete(caps, p); d != to {
				caps[p] = 0
			}
		}
	}
}

// betterDomain returns the domain in which the group would cost least, -1 when that is where it is, was tried, or saves
// less than the part worth of the price.
func (g coLocationGroup) betterDomain(a *packing.Solution, worth float64, tried map[packing.ClassDomain]bool) int {
	names := a.W.Topology.Domains[g.key]
	from := slices.IndexFunc(a.Tally.Count[g.counter], func(n int) bool { return n > 0 })
	if from < 0 {
		return -1
	}
	mine := g.costOf(a)
	if mine < worth*a.NewNodePrice() {
		return -1
	}
	to, least := -1, mine-worth*a.NewNodePrice()
	for d, name := range names {
		if p := (packing.ClassDomain{Class: g.classes[0].ID, Key: g.key, Domain: name}); d == from || tried[p] {
			continue
		}
		if cost := g.costIn(a, name); cost < least {
			to, least = d, cost
		}
	}
	if to >= 0 {
		tried[packing.ClassDomain{Class: g.classes[0].ID, Key: g.key, Domain: names[to]}] = true
	}
	return to
}

// costOf is the group's part of the price of the new nodes it is on, by what it takes of them.
func (g coLocationGroup) costOf(a *packing.Solution) float64 {
	sum := 0.0
	for _, b := range a.Bins {
		if b.Offer == nil {
			continue
		}
		mine, all := make([]int64, len(a.W.Dims)), make([]int64, len(a.W.Dims))
		for _, l := range b.Load {
			its := slices.Contains(g.classes, l.Pod.Class)
			for i, x := range l.Pod.Class.Need {
				if all[i] += x * int64(len(l.Pods)); its {
					mine[i] += x * int64(len(l.Pods))
				}
			}
		}
		if part := capacity.DominantShare(mine, all); part > 0 {
			sum += part * a.PriceOf(b)
		}
	}
	return sum
}

// costIn is about what the group would cost in the domain: nothing where other nodes have room for it, else its share
// of new ones.
func (g coLocationGroup) costIn(a *packing.Solution, domain string) float64 {
	type roomOf struct {
		bin  *capacity.Bin
		room []int64
	}
	var there []roomOf
	for _, b := range a.Bins {
		if b.DomainOf(g.key) == domain && (b.Offer == nil || !b.Offer.InstanceType.Pool.MinValues()) {
			there = append(there, roomOf{b, slices.Clone(b.Room)})
		}
	}
	sum := 0.0
	for _, k := range g.classes {
		left := len(k.Pods) - len(a.Rest[k.ID])
		l := &packing.PodBatch{View: k.LastRelaxation(), Pins: []podclass.DomainPin{{Key: g.key, Domain: domain}},
			Admit: a.W.Admissions.PinnedAdmission(k.LastRelaxation().Admission,
				[]podclass.DomainPin{{Key: g.key, Domain: domain}})}
		for _, p := range there {
			n := min(left, capacity.FitCount(k.Need, p.room))
			if n == 0 || a.AlternativeFor(l, p.bin) < 0 {
				continue
			}
			n = min(n, a.W.Topology.MaxPodsByHostRules(l.View, a.SiteOf(p.bin)))
			for i, x := range k.Need {
				p.room[i] -= x * int64(n)
			}
			left -= n
		}
		if left > 0 {
			sum += float64(left) * a.W.Catalog.MinPriceShare(l.View, l.Pins)
		}
	}
	return sum
}
