package binpack

import "slices"

const (
	// mostTurns is how often a plan is made anew with the pods first that had no place.
	mostTurns = 2
	// fewPods is of how many pods plans are made anew for that.
	fewPods = 300
	// mostSizes is how many sizes of pods take turns.
	mostSizes = 8
)

// withLeftFirst is the solution, or another that places more pods because those that have no place choose first,
// because small ones do where limits leave little, or because nobody asks for more than it requires. Pods that exclude
// each other, or want the same scarce node, have no order that is right for all clusters, so one is found by trying.
// Many pods take too long to be packed so often.
func (w *problem) withLeftFirst(best *solution, st strategy) *solution {
	if len(w.classes.waiting) > fewPods || !best.isShort() {
		return best
	}
	alone := w.placesMoreAlone(best)
	again := func() *solution {
		a := w.withinLimits(w.packByPrices(st), st)
		if a.leavesFewer(best) {
			best = a
		}
		return a
	}
	st.turns = map[int]int{}
	for last := best; alone && best.isShort(); last = again() {
		if learned := takeTurns(last, st.turns); !learned {
			break
		}
	}
	if best.isShort() && best.mayBeLimited() {
		st.turns = w.smallFirst()
		again()
	}
	if st.turns, st.ignorePreferences = nil, true; best.isShort() && w.classes.anyPreference() {
		again()
	}
	return best
}

// placesMoreAlone reports whether the classes that the solution leaves would have more places if there were no others.
func (w *problem) placesMoreAlone(best *solution) bool {
	a := w.newSolution(w.plainStrategy())
	newPacking(a, &lessons{}).packTier(func(k *podClass) bool { return len(best.rest[k.id]) > 0 })
	return slices.ContainsFunc(w.classes.list,
		func(k *podClass) bool { return len(a.rest[k.id]) < len(best.rest[k.id]) })
}

// takeTurns puts those who had no place in the solution before those who had; false when that was tried often enough.
func takeTurns(a *solution, turns map[int]int) bool {
	most, moved := 0, false
	for _, k := range a.w.classes.list {
		if len(a.rest[k.id]) > 0 && a.couldHold(k) {
			turns[k.id]++
			most, moved = max(most, turns[k.id]), true
		}
	}
	return moved && most <= mostTurns
}

// smallFirst are turns in which pods choose before those that cost more on nodes of their own.
func (w *problem) smallFirst() map[int]int {
	share := func(k *podClass) float64 { return w.catalog.minPriceShare(k.lastRelaxation(), nil) }
	var all []float64
	for _, k := range w.classes.list {
		all = append(all, share(k))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	out := map[int]int{}
	for _, k := range w.classes.list {
		at, _ := slices.BinarySearch(all, share(k))
		out[k.id] = 1 + (len(all)-1-at)*min(mostSizes, len(all))/len(all)
	}
	return out
}
