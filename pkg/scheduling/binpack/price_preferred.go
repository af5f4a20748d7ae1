package binpack

import (
	"slices"

	"joiner.sh/pkg/scheduling/podclass"
)

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
	view := func(k *podclass.Class) *podclass.RelaxedPod { return views[k.ID] }
	if !slices.ContainsFunc(w.classes.List, func(k *podclass.Class) bool {
		return !views[k.ID].PricedAs(k.LastRelaxation())
	}) {
		return px.worth
	}
	count := func(k *podclass.Class) int { return len(k.Pods) - len(a.rest[k.ID]) }
	return findViewPrices(w, count, view, px.alone != nil, guideRounds)
}

// usualViewsOf are, by class, how far those pods are relaxed that a new node holds, most of them where they differ, and
// the last relaxation where there are none.
func usualViewsOf(a *solution) []*podclass.RelaxedPod {
	pods := map[*podclass.RelaxedPod]int{}
	for _, b := range a.bins {
		if b.Offer == nil {
			continue
		}
		for _, l := range b.Load {
			pods[l.Pod] += len(l.Pods)
		}
	}
	out := make([]*podclass.RelaxedPod, len(a.w.classes.List))
	for i, k := range a.w.classes.List {
		out[i] = k.LastRelaxation()
		for _, v := range k.Views {
			if pods[v] > pods[out[i]] {
				out[i] = v
			}
		}
	}
	return out
}
