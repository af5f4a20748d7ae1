package prices

import (
	"slices"

	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
)

// GuidePricesFor returns the prices by which the solution is improved: those there are or, where it keeps what pods
// prefer, those of pods that require it. They prove nothing about plans that give preferences up.
func (px *Pricing) GuidePricesFor(s *packing.Solution) *ShadowPrices {
	p := s.W
	views := usualViewsOf(s)
	view := func(class *podclass.Class) *podclass.RelaxedPod { return views[class.ID] }
	if !slices.ContainsFunc(p.Classes.List, func(class *podclass.Class) bool {
		return !views[class.ID].PricedAs(class.LastRelaxation())
	}) {
		return px.Worth
	}
	count := func(class *podclass.Class) int { return len(class.Pods) - len(s.Rest[class.ID]) }
	return findViewPrices(p, count, view, px.Alone != nil)
}

// usualViewsOf are, by class, how far those pods are relaxed that a new node holds, most of them where they differ, and
// the last relaxation where there are none.
func usualViewsOf(s *packing.Solution) []*podclass.RelaxedPod {
	pods := map[*podclass.RelaxedPod]int{}
	for _, b := range s.Bins {
		if b.Offering == nil {
			continue
		}
		for _, l := range b.Load {
			pods[l.Pod] += len(l.Pods)
		}
	}
	out := make([]*podclass.RelaxedPod, len(s.W.Classes.List))
	for i, class := range s.W.Classes.List {
		out[i] = class.LastRelaxation()
		for _, pod := range class.Views {
			if pods[pod] > pods[out[i]] {
				out[i] = pod
			}
		}
	}
	return out
}
