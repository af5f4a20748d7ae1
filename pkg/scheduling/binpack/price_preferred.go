package binpack

import "slices"

// podPricesFor is what pods are worth where new nodes are made for them.
func podPricesFor(a *solution) *shadowPrices {
	if a.prices != nil {
		return a.prices
	}
	return a.w.worth
}

// guidePricesFor are the prices by which a solution is improved: the best there are of the problem, or, where the
// solution keeps what pods prefer, those of pods that require it. They prove nothing about plans that give preferences
// up.
func guidePricesFor(a *solution) *shadowPrices {
	w := a.w
	if w.guide == nil {
		w.guide = findGuidePrices(a)
	}
	if w.guide == w.worth && w.raised != nil {
		return w.raised
	}
	return w.guide
}

// findGuidePrices are the prices of the problem, or those of pods that require what the solution keeps of what they
// prefer.
func findGuidePrices(a *solution) *shadowPrices {
	w := a.w
	views := usualViewsOf(a)
	view := func(k *podClass) *relaxedPod { return views[k.id] }
	if !slices.ContainsFunc(w.classes.list, func(k *podClass) bool {
		return !views[k.id].pricedAs(k.lastRelaxation())
	}) {
		return w.worth
	}
	count := func(k *podClass) int { return len(k.pods) - len(a.rest[k.id]) }
	return w.findViewPrices(count, view, w.alone != nil, guideRounds)
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

// pricedAs reports whether pods of the view are priced as those of the other view of the class.
func (v *relaxedPod) pricedAs(o *relaxedPod) bool {
	return v.admit == o.admit && slices.Equal(v.host, o.host) && slices.Equal(v.other, o.other)
}
