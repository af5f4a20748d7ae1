package binpack

import (
	"cmp"
	"maps"
	"slices"
)

const (
	// mostTurns is how often a plan is made anew with the pods first that had no place.
	mostTurns = 2
	// fewPods is of how many pods plans are made anew for that.
	fewPods = 300
	// mostSizes is how many sizes of pods take turns.
	mostSizes = 8
)

// withLeftFirst is the attempt, or another that places more pods because those that have no place choose first, because
// small ones do where limits leave little, or because nobody asks for more than it requires. Pods that exclude each
// other, or want the same scarce node, have no order that is right for all clusters, so one is found by trying. Many
// pods take too long to be packed so often.
func (w *problem) withLeftFirst(best *solution, byPriority bool) *solution {
	if len(w.waiting) > fewPods || !best.isShort() {
		return best
	}
	alone := w.placesMoreAlone(best)
	defer func() { w.turns, w.bare = nil, false }()
	tries := func() *solution {
		a := w.withinLimits(w.bestOf(byPriority), byPriority)
		if a.leavesFewer(best) {
			best = a
		}
		return a
	}
	w.turns = map[int]int{}
	for last := best; alone && best.isShort(); last = tries() {
		if learned := w.takeTurns(last); !learned {
			break
		}
	}
	if best.isShort() && best.mayBeLimited() {
		w.turns = w.smallFirst()
		tries()
	}
	if w.turns, w.bare = nil, true; alone && best.isShort() && w.anyPreference() {
		tries()
	}
	return best
}

// placesMoreAlone reports whether the kinds that the attempt leaves would have more places if there were no others.
func (w *problem) placesMoreAlone(best *solution) bool {
	left := func(k *podClass) bool { return len(best.rest[k.id]) > 0 }
	a := w.newSolution(maps.Clone(w.homes), byShadowPrice)
	a.packTier(left)
	return slices.ContainsFunc(w.kinds, func(k *podClass) bool { return len(a.rest[k.id]) < len(best.rest[k.id]) })
}

// takeTurns puts those who had no place in the attempt before those who had; false when that was tried often enough.
func (w *problem) takeTurns(a *solution) bool {
	most, moved := 0, false
	for _, k := range w.kinds {
		if len(a.rest[k.id]) > 0 && a.couldHold(k) {
			w.turns[k.id]++
			most, moved = max(most, w.turns[k.id]), true
		}
	}
	return moved && most <= mostTurns
}

// smallFirst are turns in which pods choose before those that cost more on nodes of their own.
func (w *problem) smallFirst() map[int]int {
	share := func(k *podClass) float64 { return w.minPriceShare(k.lastRelaxation(), nil) }
	var all []float64
	for _, k := range w.kinds {
		all = append(all, share(k))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	out := map[int]int{}
	for _, k := range w.kinds {
		at, _ := slices.BinarySearch(all, share(k))
		out[k.id] = 1 + (len(all)-1-at)*min(mostSizes, len(all))/len(all)
	}
	return out
}

// anyPreference reports whether a pod that waits has a preference.
func (w *problem) anyPreference() bool {
	return slices.ContainsFunc(w.kinds, func(k *podClass) bool { return len(k.views) > 1 })
}

// packTurns packs the kinds that in accepts, those first that had no place in most attempts before.
func (a *solution) packTurns(in func(*podClass) bool) {
	all := slices.Sorted(maps.Values(a.w.turns))
	slices.SortFunc(all, func(x, y int) int { return cmp.Compare(y, x) })
	for _, n := range slices.Compact(all) {
		a.packTier(func(k *podClass) bool { return in(k) && a.w.turns[k.id] == n })
	}
	a.packTier(in)
}

// resetLevels asks for every preference again, or for none in attempts that do without.
func (a *solution) resetLevels() {
	for i, k := range a.w.kinds {
		if a.level[i] = 0; a.w.bare {
			a.level[i] = len(k.views) - 1
		}
	}
}
