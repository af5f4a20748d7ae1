package binpack

import (
	"cmp"
	"slices"

	"joiner/pkg/scheduling/lowerbound"
)

// strategy is how new nodes are chosen.
type strategy uint8

const (
	byShadowPrice   strategy = iota // one after the other, by the prices of pods
	byCostShare                     // one after the other, by the price of each pod's share of a node
	byLinearProgram                 // all together, as far as few rules tie pods to each other
)

// solveByLinearProgram chooses all new nodes together, where there are few, of few offers. That has to place as many
// pods for less. Of many offers some fit whatever is left, and choosing one node after the other is about as good.
func (w *problem) solveByLinearProgram(best *solution, byPriority bool) *solution {
	if best.opened == 0 || best.opened > fewNodes || w.worth == nil || len(w.worth.problem.Offers) > offersOfFleets ||
		len(w.worth.classes) > sortsOfFleets ||
		best.newNodePrice() <= best.lowerBound()*(1+smallGap) {
		return best
	}
	next := w.improveSolution(w.solve(byPriority, byLinearProgram), byPriority)
	if next.countWaiting(w.classes.list) == best.countWaiting(w.classes.list) && next.totalCost() < best.totalCost()*(1-1e-9) {
		return next
	}
	return best
}

// improveSolution is the attempt after the search for something cheaper.
func (w *problem) improveSolution(a *solution, byPriority bool) *solution {
	homes := w.homes
	a = w.diversifySpot(w.improveDomains(a, byPriority), byPriority)
	w.homes = homes
	a.improveByLocalSearch(cmp.Or(w.s.Rules.PackingIterations, defaultSearchSteps))
	return a
}

const (
	// sortsOfFleets is how many sorts of pods new nodes are chosen for all together; the work grows with their third
	// power.
	sortsOfFleets = 60
	// offersOfFleets is of how many offers they are: a dozen types in a few zones.
	offersOfFleets = 100
)

// openFleet makes new nodes in the pools for all lots together, where their pods are of few sorts. What rules keep from
// the nodes that it was meant for is left over.
func (a *solution) openFleet(pools []*pool, lots []*podBatch) {
	free := slices.DeleteFunc(slices.Clone(lots), func(l *podBatch) bool {
		return l.left == 0 || l.whole ||
			l.view.hasHostAffinity()
	})
	if len(free) == 0 {
		return
	}
	g := &priceGuide{a: a}
	g.prepareGroups(a.candidateOffers(pools, free), free)
	if len(g.items) > sortsOfFleets || !g.countRemaining() {
		return
	}
	p := lowerbound.CoverProblem{Caps: a.w.worth.problem.Caps}
	for _, it := range g.items {
		c := a.w.worth.problem.Classes[it.class]
		p.Classes = append(p.Classes, lowerbound.PriceClass{Need: c.Need, Group: c.Group, Count: float64(it.all),
			Most: float64(max(1, it.left))})
	}
	for _, c := range g.cands {
		p.Offers = append(p.Offers, lowerbound.NodeOffer{Price: a.w.offerCost(c.offer), Room: c.room, Holds: c.items})
	}
	for _, n := range lowerbound.CoverByWholeNodes(p) {
		d := a.newDraft(g.cands[n.Offer].offer)
		for i, k := range n.Class {
			left := n.Amount[i]
			for _, l := range g.items[k].lots {
				left -= d.takePods(l, left)
			}
		}
		if len(d.takes) == 0 {
			continue
		}
		if _, full := a.openCopies(d.offer, d.takes, 1); full || a.atMost() {
			return
		}
	}
}
