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
)

// withLeftFirst is the solution, or another that places more pods because those that have no place choose first,
// because small ones do where limits leave little, or because nobody asks for more than it requires. Pods that exclude
// each other, or want the same scarce node, have no order that is right for all clusters, so one is found by trying.
// Many pods take too long to be packed so often.
func withLeftFirst(p *packing.Problem, best *packing.Solution, st pricedStrategy) *packing.Solution {
	if len(p.Classes.Waiting) > fewPods || !best.IsShort() {
		return best
	}
	alone := placesMoreAlone(p, best, st.pricing)
	again := func() *packing.Solution {
		s := withinLimits(p, packByPrices(p, st), st)
		if s.LeavesFewer(best) {
			best = s
		}
		return s
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
		for _, turns := range turnsByShare(p) {
			if st.Turns = turns; best.IsShort() {
				again()
			}
		}
	}
	if st.Turns, st.IgnorePreferences = nil, true; best.IsShort() && p.Classes.AnyPreference() {
		again()
	}
	return best
}

// placesMoreAlone reports whether the classes that the solution leaves would have more places if there were no others.
func placesMoreAlone(p *packing.Problem, best *packing.Solution, px *prices.Pricing) bool {
	if len(p.Classes.List) == 1 {
		return false
	}
	s := p.NewSolution(plainStrategy(p, px).Strategy)
	s.PackTier(func(class *podclass.Class) bool { return len(best.Rest[class.ID]) > 0 })
	return slices.ContainsFunc(p.Classes.List,
		func(class *podclass.Class) bool { return len(s.Rest[class.ID]) < len(best.Rest[class.ID]) })
}

// needsReservation reports whether only capacity reservations could take pods of the class, were there no others.
func needsReservation(p *packing.Problem, class *podclass.Class) bool {
	pod := class.LastRelaxation()
	return p.Catalog.MinPriceShare(pod, nil) >= capacity.NoPrice && p.Catalog.ForSome(pod)
}

// takeTurns puts those of the classes asked about who had no place in the solution before those who had; false when
// that was tried often enough.
func takeTurns(s *packing.Solution, turns map[int]int, which func(*packing.Problem, *podclass.Class) bool) bool {
	most, moved := 0, false
	for _, class := range s.W.Classes.List {
		if len(s.Rest[class.ID]) > 0 && which(s.W, class) {
			turns[class.ID]++
			most, moved = max(most, turns[class.ID]), true
		}
	}
	return moved && most <= mostTurns
}

// turnsByShare returns turns in which pods choose before those that cost more on nodes of their own, and turns in which
// only those that cost most wait for the others; none where all cost the same.
func turnsByShare(p *packing.Problem) []map[int]int {
	ranks, n := rankByShare(p)
	if n < 2 {
		return nil
	}
	smallFirst, dearestLast := map[int]int{}, map[int]int{}
	for id, rank := range ranks {
		smallFirst[id] = n - rank
		dearestLast[id] = min(n-1-rank, 1)
	}
	return []map[int]int{smallFirst, dearestLast}
}

// rankByShare ranks the classes by the price of a pod's share of a node of its own, the cheapest 0; n is how many ranks
// there are.
func rankByShare(p *packing.Problem) (ranks map[int]int, n int) {
	share := func(class *podclass.Class) float64 { return p.Catalog.MinPriceShare(class.LastRelaxation(), nil) }
	var all []float64
	for _, class := range p.Classes.List {
		all = append(all, share(class))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	ranks = map[int]int{}
	for _, class := range p.Classes.List {
		ranks[class.ID], _ = slices.BinarySearch(all, share(class))
	}
	return ranks, len(all)
}
