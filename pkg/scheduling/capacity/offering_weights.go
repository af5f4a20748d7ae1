package capacity

import (
	"slices"

	"joiner.sh/pkg/scheduling/podclass"
)

// ByWeight are the pools by weight, the heaviest first.
func (cat *Catalog) ByWeight() [][]*OfferingPool {
	if cat.weights != nil {
		return cat.weights.pools
	}
	cat.weights = &poolTiers{}
	for start := 0; start < len(cat.Pools); {
		end := start
		for end < len(cat.Pools) && cat.Pools[end].Weight == cat.Pools[start].Weight {
			end++
		}
		cat.weights.pools = append(cat.weights.pools, cat.Pools[start:end])
		cat.weights.known = append(cat.weights.known, map[pricedNeed]bool{})
		start = end
	}
	return cat.weights.pools
}

// TierSells reports whether pools of that weight have a node for sale that can hold a pod of the class.
func (cat *Catalog) TierSells(i int, admit *podclass.Admission, class *podclass.Class) bool {
	x := cat.weights
	id := pricedNeed{admit, class.Shape}
	yes, ok := x.known[i][id]
	if !ok {
		yes = slices.ContainsFunc(x.pools[i], func(p *OfferingPool) bool {
			return !p.refuses(admit) && slices.ContainsFunc(p.Sale,
				func(o *Offering) bool { return FitCount(class.Need, o.Room) > 0 && o.FirstAlternative(admit) >= 0 })
		})
		x.known[i][id] = yes
	}
	return yes
}

// HeaviestTier is the index of the heaviest pools that sell a node for pods of the class with the admission, -1 for
// none.
func (cat *Catalog) HeaviestTier(admit *podclass.Admission, class *podclass.Class) int {
	for i := range cat.ByWeight() {
		if cat.TierSells(i, admit, class) {
			return i
		}
	}
	return -1
}

// HomeIn is HeaviestTier for a view that is tied to domains, 0 where all pools weigh the same.
func (cat *Catalog) HomeIn(pod *podclass.RelaxedPod, pins []podclass.DomainPin) int {
	if len(cat.ByWeight()) < 2 {
		return 0
	}
	admit := cat.Admissions.PinnedAdmission(pod.Admission, pins)
	if i := cat.HeaviestTier(admit, pod.Class); i >= 0 {
		return i
	}
	return slices.IndexFunc(cat.ByWeight(), func(pools []*OfferingPool) bool {
		return slices.ContainsFunc(pools, func(p *OfferingPool) bool { return p.reserves(pod.Class, admit) })
	})
}
