package binpack

import "slices"

// guidePricesFor are the prices by which a solution is improved: the best there are, or, where the solution that is
// improved first keeps what pods prefer, those of pods that require it. They prove nothing about plans that give
// preferences up.
func (px *pricing) guidePricesFor(a *solution) *shadowPrices {
	if px.guide == nil {
		px.guide = px.findGuidePrices(a)
	}
	if px.guide == px.worth && px.raised != nil {
		return px.raised
	}
	return px.guide
}

// findGuidePrices are the prices there are, or those of pods that require what the solution keeps of what they prefer.
func (px *pricing) findGuidePrices(a *solution) *shadowPrices {
	w := a.w
	views := usualViewsOf(a)
	view := func(k *podClass) *relaxedPod { return views[k.id] }
	if !slices.ContainsFunc(w.classes.list, func(k *podClass) bool {
		return !views[k.id].pricedAs(k.lastRelaxation())
	}) {
		return px.worth
	}
	count := func(k *podClass) int { return len(k.pods) - len(a.rest[k.id]) }
	return findViewPrices(w, count, view, px.alone != nil, guideRounds)
}

// usualViewsOf are, by class, how far those pods are relaxed that a new node holds, most of them where they differ, and
// the last relaxation where there are none.
func usualViewsOf(a *solution) []*relaxedPod {
	pods := map[*relaxedPod]int{}
	for _, b := range a.bins {
		if b.offer == nil {
			continue
		}
		for _, l := range b.load {
			pods[l.view] += len(l.pods)
		}
	}
	out := make([]*relaxedPod, len(a.w.classes.list))
	for i, k := range a.w.classes.list {
		out[i] = k.lastRelaxation()
		for _, v := range k.views {
			if pods[v] > pods[out[i]] {
				out[i] = v
			}
		}
	}
	return out
}
