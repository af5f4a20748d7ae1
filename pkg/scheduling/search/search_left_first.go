package search

import (
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/prices"
)

const (
	// mostTurns caps the times that a plan is made anew with the pods first that had no place.
	mostTurns = 2
	// fewPods is of how many pods plans are made anew for that.
	fewPods = 300
	// mostSizes caps the sizes of pods that take turns.
	mostSizes = 8
	// mostCuts caps the sets of the dearest pods that are made to wait, one after the other.
	mostCuts = 3
)

// withLeftFirst is the solution, or another that places more pods because those that have no place choose first,
// because small ones do where limits leave little, or because nobody asks for more than it requires. Pods that exclude
// each other, or want the same scarce node, have no order that is right for all clusters, so one is found by trying.
// Many pods take too long to be packed so often.
func withLeftFirst(w *packing.Problem, best *packing.Solution, st pricedStrategy) *packing.Solution {
	if len(w.Classes.Waiting) > fewPods || !best.IsShort() {
		return best
	}
	alone := placesMoreAlone(w, best, st.pricing)
	again := func() *packing.Solution {
		a := withinLimits(w, packByPrices(w, st), st)
		if a.LeavesFewer(best) {
			best = a
		}
		return a
	}
	putFirst := func(which func(*packing.Problem, *podclass.Class) bool) {
		st.Turns = map[int]int{}
		for last := best; alone && best.IsShort(); last = again() {
			if learned := takeTurns(last, st.Turns, which); !learned {
				break
			}
		}
	}
	putFirst((*packing.Problem).CouldHold)
	if st.ByPriority { // those of a high priority may have a place beside reservations
		st.ByPriority = false
		putFirst(needsReservation)
		st.ByPriority = true
	}
	if best.IsShort() && best.MayBeLimited() {
		for _, turns := range turnsByShare(w) {
			if st.Turns = turns; best.IsShort() {
				again()
			}
		}
	}
	if st.Turns, st.IgnorePreferences = nil, true; best.IsShort() && w.Classes.AnyPreference() {
		again()
	}
	return best
}

// placesMoreAlone reports whether the classes that the solution leaves would have more places if there were no others.
func placesMoreAlone(w *packing.Problem, best *packing.Solution, px *prices.Pricing) bool {
	if len(w.Classes.List) == 1 {
		return false
	}
	a := w.NewSolution(plainStrategy(w, px).Strategy)
	a.PackTier(func(k *podclass.Class) bool { return len(best.Rest[k.ID]) > 0 })
	return slices.ContainsFunc(w.Classes.List,
		func(k *podclass.Class) bool { return len(a.Rest[k.ID]) < len(best.Rest[k.ID]) })
}

// needsReservation reports whether only capacity reservations could take pods of the class, were there no others.
func needsReservation(w *packing.Problem, k *podclass.Class) bool {
	v := k.LastRelaxation()
	return w.Catalog.MinPriceShare(v, nil) >= capacity.NoPrice && w.Catalog.ForSome(v)
}

// takeTurns puts those of the classes asked about who had no place in the solution before those who had; false when
// that was tried often enough.
func takeTurns(a *packing.Solution, turns map[int]int, which func(*packing.Problem, *podclass.Class) bool) bool {
	most, moved := 0, false
	for _, k := range a.W.Classes.List {
		if len(a.Rest[k.ID]) > 0 && which(a.W, k) {
			turns[k.ID]++
			most, moved = max(most, turns[k.ID]), true
		}
	}
	return moved && most <= mostTurns
}

// turnsByShare are turns in which classes choose by the price of a pod's share, one after the other; none where all
// have the same.
func turnsByShare(w *packing.Problem) []map[int]int {
	ranks, n := rankByShare(w)
	if n < 2 {
		return nil
	}
	return append([]map[int]int{smallFirst(ranks, n)}, dearLast(ranks, n)...)
}

// smallFirst are turns in which pods choose before those that cost more on nodes of their own: before those of a higher
// of the n ranks.
func smallFirst(ranks map[int]int, n int) map[int]int {
	out := map[int]int{}
	for id, rank := range ranks {
		out[id] = 1 + (n-1-rank)*min(mostSizes, n)/n
	}
	return out
}

// dearLast are turns in which the pods that cost most on nodes of their own wait for all others, which choose together:
// those of the highest cost alone, then those of the two highest, and so on.
func dearLast(ranks map[int]int, n int) []map[int]int {
	var out []map[int]int
	for last := n - 1; last > 0 && len(out) < mostCuts; last-- {
		turns := map[int]int{}
		for id, rank := range ranks {
			if rank < last {
				turns[id] = 1
			}
		}
		out = append(out, turns)
	}
	return out
}

// rankByShare ranks the classes by the price of a pod's share of a node of its own, the cheapest 0; n is how many ranks
// there are.
func rankByShare(w *packing.Problem) (ranks map[int]int, n int) {
	share := func(k *podclass.Class) float64 { return w.Catalog.MinPriceShare(k.LastRelaxation(), nil) }
	var all []float64
	for _, k := range w.Classes.List {
		all = append(all, share(k))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	ranks = map[int]int{}
	for _, k := range w.Classes.List {
		ranks[k.ID], _ = slices.BinarySearch(all, share(k))
	}
	return ranks, len(all)
}
