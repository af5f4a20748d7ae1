package binpack

import "joiner.sh/pkg/model/instancetypes"

const (
	// defaultSpotPoolShare is the part of all spot capacity that may be in one instance type in one zone.
	defaultSpotPoolShare = 0.8
	// fewSpotNodes is up to how many spot nodes there is no such limit.
	fewSpotNodes = 4
)

// spotUsage is the spot capacity of a cluster, in millicores.
type spotUsage struct {
	byPool map[instancetypes.Offer]int64
	total  int64
	nodes  int
	share  float64 // how much of all may be in one pool of capacity, that is one type in one zone
}

func (u *spotUsage) add(o instancetypes.Offer, cpu int64, nodes int) {
	if o.CapacityType == instancetypes.Spot {
		u.byPool[o] += cpu
		u.total += cpu
		u.nodes += nodes
	}
}

// mostInPool is how much of the spot capacity one pool of capacity may have, in millicores.
func (u spotUsage) mostInPool() int64 { return int64(u.share * float64(u.total)) }

// exceedsShare reports whether the pool of capacity has more than its share.
func (u spotUsage) exceedsShare(o instancetypes.Offer) bool {
	return o.CapacityType == instancetypes.Spot && u.nodes > fewSpotNodes &&
		float64(u.byPool[o]) > u.share*float64(u.total)
}

// anyExceedsShare reports whether any pool of capacity has more than its share.
func (u spotUsage) anyExceedsShare() bool {
	for o := range u.byPool {
		if u.exceedsShare(o) {
			return true
		}
	}
	return false
}

// spotUse is the spot capacity once the solution's new nodes are there, each as the offer it was opened with.
func (a *solution) spotUse() spotUsage {
	u := a.w.nodes.standingSpot()
	for _, b := range a.bins {
		if b.offer != nil {
			u.add(b.offer.Offer, b.offer.model.typ.Capacity.CPU, 1)
		}
	}
	return u
}

// capacityTypePrice is what the new nodes of a capacity type cost.
func capacityTypePrice(a *solution, capacityType string) float64 {
	sum := 0.0
	for _, b := range a.bins {
		if b.offer != nil && b.offer.CapacityType == capacityType {
			sum += b.offer.Price
		}
	}
	return sum
}

// diversifySpot is the solution again with less in one pool of capacity, where it has more than that pool's share in
// it: with other types, which may be cheaper than the same type elsewhere. What comes out must place as many pods, and
// as many of them on spot; else diversifyLaunches finds other zones and types for the nodes that there are.
func (w *problem) diversifySpot(a *solution, st strategy) *solution {
	use := a.spotUse()
	if !use.anyExceedsShare() {
		return a
	}
	st.guide, st.caps, st.spotCeiling = a.strategy.guide, a.strategy.caps, use.mostInPool()
	again := w.pack(st)
	again.used.spotCeiling = 0
	if again.waiting() > a.waiting() ||
		capacityTypePrice(again, instancetypes.OnDemand) > capacityTypePrice(a, instancetypes.OnDemand) {
		return a
	}
	return again
}
