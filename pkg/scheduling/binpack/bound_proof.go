package binpack

import (
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/lowerbound"
)

// mostProved is how many classes of pods Prove reckons with; the work grows with their third power.
const mostProved = 150

// ProveLowerBound is what any plan for the pods of the snapshot costs at least, in USD per hour: a bound that is higher
// than the one that Pods has time for, because its nodes hold whole pods and no more of a class than there are. It
// takes longer, and for more than mostProved classes of pods it is that of Pods. Fleets are of whole nodes too, of
// which it knows nothing.
func ProveLowerBound(s cluster.Snapshot, sells Offerings) float64 {
	w := newProblem(s, sells)
	a, _ := w.placeMostPods()
	quick := a.lowerBound()
	if quick == 0 || len(w.worth.classes) > mostProved {
		return quick
	}
	out := *w.worth
	out.problem = lowerbound.CoverProblem{Caps: out.problem.Caps, Rounds: rounds,
		Classes: slices.Clone(out.problem.Classes)}
	out.divideByClass(w.classes.list)
	w.addUsefulOffers(&out)
	out.prices = lowerbound.SolveWholePods(out.problem)
	w.worth = &out
	return max(quick, a.lowerBound())
}

// divideByClass counts the pods of each class, those that spread in equal parts however few they are, and how many of
// them one domain, and so one node, holds at most in any plan.
func (p *shadowPrices) divideByClass(kinds []*podClass) {
	for i := range p.problem.Classes {
		p.problem.Classes[i].Count = 0
	}
	for i, k := range kinds {
		x, n := p.members[i], len(k.pods)
		if x.key == "" {
			p.problem.Classes[x.class].Count += float64(n)
		}
		for _, c := range x.tied {
			p.problem.Classes[c].Count += float64(n) / float64(len(x.tied))
		}
	}
	p.limitToPods(p.problem.Classes, kinds)
}

// limitToPods lets a node hold no more pods of a class than one domain holds in any plan.
func (p *shadowPrices) limitToPods(classes []lowerbound.PriceClass, kinds []*podClass) {
	most := make([]float64, len(p.classes))
	for i, k := range kinds {
		x, n := p.members[i], len(k.pods)
		if x.key == "" {
			most[x.class] += float64(n)
		}
		for _, c := range x.tied { // the emptiest domain has at most the skew less than the fullest
			most[c] += float64(min(n, (n+(len(x.tied)-1)*x.skew)/len(x.tied)))
		}
	}
	for i := range classes {
		if c := &classes[i]; c.Most == 0 || most[i] < c.Most {
			c.Most = max(1, most[i])
		}
	}
}
