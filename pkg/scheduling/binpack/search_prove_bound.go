package binpack

import (
	"slices"

	"joiner.sh/pkg/scheduling/lowerbound"
)

// mostProved is how many classes of pods Prove reckons with; the work grows with their third power.
const mostProved = 150

// proveLowerBound is what any plan for the pods of the problem costs at least, in USD per hour: a bound that is higher
// than the one that a plan has time for, because its nodes hold whole pods and no more of a class than there are. It
// takes longer, and for more than mostProved classes of pods it is that of a plan. Fleets are of whole nodes too, of
// which it knows nothing.
func proveLowerBound(w *problem) float64 {
	a, st := placeMostPods(w)
	quick := st.pricing.lowerBound(a)
	if quick == 0 || len(st.pricing.worth.classes) > mostProved {
		return quick
	}
	out := *st.pricing.worth
	out.problem = lowerbound.CoverProblem{Caps: out.problem.Caps, Rounds: rounds,
		Classes: slices.Clone(out.problem.Classes)}
	out.divideByClass(w.classes.List)
	addUsefulOffers(w, &out)
	out.prices = lowerbound.SolveWholePods(out.problem)
	return max(quick, st.pricing.withWorth(&out).lowerBound(a))
}
