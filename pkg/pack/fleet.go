package pack

import (
	"cmp"
	"slices"

	"joiner/pkg/cover"
)

// manner is how new nodes are chosen.
type manner uint8

const (
	byPrices manner = iota // one after the other, by the prices of pods
	byShares               // one after the other, by the price of each pod's share of a node
	byFleets               // all together, as far as few rules tie pods to each other
)

// fleets chooses all new nodes together, where there are few, of few offers. That has to place as many pods for less. Of many offers some fit
// whatever is left, and choosing one node after the other is about as good.
func (w *world) fleets(best *attempt, byPriority bool) *attempt {
	if best.opened == 0 || best.opened > fewNodes || w.worth == nil || len(w.worth.problem.Offers) > offersOfFleets || len(w.worth.classes) > sortsOfFleets ||
		best.price() <= best.bound()*(1+smallGap) {
		return best
	}
	next := w.finished(w.pass(byPriority, byFleets), byPriority)
	if next.waiting(w.kinds) == best.waiting(w.kinds) && next.cost() < best.cost()*(1-1e-9) {
		return next
	}
	return best
}

// finished is the attempt after the search for something cheaper.
func (w *world) finished(a *attempt, byPriority bool) *attempt {
	homes := w.homes
	a = w.dispersed(w.settledWell(a, byPriority), byPriority)
	w.homes = homes
	a.improve(cmp.Or(w.s.Rules.SearchSteps, defaultSearchSteps))
	return a
}

const (
	// sortsOfFleets is how many sorts of pods new nodes are chosen for all together; the work grows with their third power.
	sortsOfFleets = 60
	// offersOfFleets is of how many offers they are: a dozen types in a few zones.
	offersOfFleets = 100
)

// openFleet makes new nodes in the pools for all lots together, where their pods are of few sorts. What rules keep from the nodes that it was
// meant for is left over.
func (a *attempt) openFleet(pools []*pool, lots []*lot) {
	free := slices.DeleteFunc(slices.Clone(lots), func(l *lot) bool { return l.left == 0 || l.whole || l.view.follows() })
	if len(free) == 0 {
		return
	}
	g := &guide{a: a}
	g.prepare(a.candidates(pools, free), free)
	if len(g.items) > sortsOfFleets || !g.count() {
		return
	}
	p := cover.Problem{Caps: a.w.worth.problem.Caps}
	for _, it := range g.items {
		c := a.w.worth.problem.Classes[it.class]
		p.Classes = append(p.Classes, cover.Class{Need: c.Need, Group: c.Group, Count: float64(it.all), Most: float64(max(1, it.left))})
	}
	for _, c := range g.cands {
		p.Offers = append(p.Offers, cover.Offer{Price: a.w.cost(c.offer), Room: c.room, Holds: c.items})
	}
	for _, n := range cover.Fleet(p) {
		d := a.draft(g.cands[n.Offer].offer)
		for i, k := range n.Class {
			left := n.Amount[i]
			for _, l := range g.items[k].lots {
				left -= d.take(l, left)
			}
		}
		if len(d.takes) == 0 {
			continue
		}
		if _, full := a.apply(d.offer, d.takes, 1); full || a.atMost() {
			return
		}
	}
}
