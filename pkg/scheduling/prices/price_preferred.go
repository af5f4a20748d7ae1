package prices

import (
	"slices"

	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
)

// GuidePricesFor are the prices by which a solution is improved: the best there are, or, where the solution that is
// improved first keeps what pods prefer, those of pods that require it. They prove nothing about plans that give
// preferences up.
func (px *Pricing) GuidePricesFor(a *packing.Solution) *ShadowPrices {
	if px.guide == nil {
		px.guide = px.findGuidePrices(a)
	}
	return px.guide
}

// findGuidePrices are the prices there are, or those of pods that require what the solution keeps of what they prefer.
func (px *Pricing) findGuidePrices(a *packing.Solution) *ShadowPrices {
	w := a.W
	views := usualViewsOf(a)
	view := func(k *podclass.Class) *podclass.RelaxedPod { return views[k.ID] }
	if !slices.ContainsFunc(w.Classes.List, func(k *podclass.Class) bool {
		return !views[k.ID].PricedAs(k.LastRelaxation())
	}) {
		return px.Worth
	}
	count := func(k *podclass.Class) int { return len(k.Pods) - len(a.Rest[k.ID]) }
	return findViewPrices(w, count, view, px.Alone != nil, guideRounds)
}

// usualViewsOf are, by class, how far those pods are relaxed that a new node holds, most of them where they differ, and
// the last relaxation where there are none.
func usualViewsOf(a *packing.Solution) []*podclass.RelaxedPod {
	pods := map[*podclass.RelaxedPod]int{}
	for _, b := range a.Bins {
		if b.Offering == nil {
			continue
		}
		for _, l := range b.Load {
			pods[l.Pod] += len(l.Pods)
		}
	}
	out := make([]*podclass.RelaxedPod, len(a.W.Classes.List))
	for i, k := range a.W.Classes.List {
		out[i] = k.LastRelaxation()
		for _, v := range k.Views {
			if pods[v] > pods[out[i]] {
				out[i] = v
			}
		}
	}
	return out
}
