package binpack

import (
	"slices"

	"joiner.sh/pkg/scheduling/podclass"
)

// poolTiers are the pools by weight, the heaviest first.
type poolTiers struct {
	pools [][]*pool
	known []map[pricedNeed]bool // by index of pools: what sells has answered
}

// byWeight finds them once.
func (cat *catalog) byWeight() *poolTiers {
	if cat.weights != nil {
		return cat.weights
	}
	cat.weights = &poolTiers{}
	for start := 0; start < len(cat.pools); {
		end := start
		for end < len(cat.pools) && cat.pools[end].Weight == cat.pools[start].Weight {
			end++
		}
		cat.weights.pools = append(cat.weights.pools, cat.pools[start:end])
		cat.weights.known = append(cat.weights.known, map[pricedNeed]bool{})
		start = end
	}
	return cat.weights
}

// tierSells reports whether pools of that weight have a node for sale that can hold a pod of the class.
func (x *poolTiers) tierSells(i int, admit *podclass.Admission, k *podclass.Class) bool {
	id := pricedNeed{admit, k.Shape}
	yes, ok := x.known[i][id]
	if !ok {
		yes = slices.ContainsFunc(x.pools[i], func(p *pool) bool {
			return !p.refuses(admit) && slices.ContainsFunc(p.sale,
				func(o *poolOffering) bool { return fitCount(k.Need, o.room) > 0 && o.firstAlternative(admit) >= 0 })
		})
		x.known[i][id] = yes
	}
	return yes
}

// heaviestTier is the index of the heaviest pools that sell a node for pods of the class with the admission, -1 for
// none.
func (cat *catalog) heaviestTier(admit *podclass.Admission, k *podclass.Class) int {
	x := cat.byWeight()
	for i := range x.pools {
		if x.tierSells(i, admit, k) {
			return i
		}
	}
	return -1
}

// homeIn is heaviestTier for a view that is tied to domains, 0 where all pools weigh the same.
func (cat *catalog) homeIn(v *podclass.RelaxedPod, pins []podclass.DomainPin) int {
	if len(cat.byWeight().pools) < 2 {
		return 0
	}
	admit := cat.admissions.PinnedAdmission(v.Admission, pins)
	if i := cat.heaviestTier(admit, v.Class); i >= 0 {
		return i
	}
	return slices.IndexFunc(cat.byWeight().pools, func(pools []*pool) bool {
		return slices.ContainsFunc(pools, func(p *pool) bool { return p.reserves(v.Class, admit) })
	})
}
