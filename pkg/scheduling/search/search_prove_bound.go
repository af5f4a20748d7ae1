package search

import (
	"slices"

	"joiner.sh/pkg/scheduling/lowerbound"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/prices"
)

// mostProved is how many classes of pods Prove reckons with; the work grows with their third power.
const mostProved = 150

// ProveLowerBound is what any plan for the pods of the problem costs at least, in USD per hour: a bound that is higher
// than the one that a plan has time for, because its nodes hold whole pods and no more of a class than there are. It
// takes longer, and for more than mostProved classes of pods it is that of a plan. Fleets are of whole nodes too, of
// which it knows nothing.
func ProveLowerBound(w *packing.Problem) float64 {
	a, st := placeMostPods(w)
	quick := st.pricing.LowerBound(a)
	if quick == 0 || len(st.pricing.Worth.Classes) > mostProved {
		return quick
	}
	out := *st.pricing.Worth
	out.Problem = lowerbound.CoverProblem{Caps: out.Problem.Caps, Rounds: prices.Rounds,
		Classes: slices.Clone(out.Problem.Classes)}
	out.DivideByClass(w.Classes.List)
	prices.AddUsefulOffers(w, &out)
	out.Prices = lowerbound.SolveWholePods(out.Problem)
	return max(quick, st.pricing.WithWorth(&out).LowerBound(a))
}
