package binpack

import "joiner.sh/pkg/model/instancetypes"

// defaultSpotPoolShare is the part of all spot capacity that may be in one instance type in one zone.
const defaultSpotPoolShare = 0.8

// fewSpotNodes is up to how many spot nodes there is no such limit.
const fewSpotNodes = 4

// spotUsage is the spot capacity of a cluster, in millicores.
type spotUsage struct {
	byPool map[instancetypes.Offer]int64
	total  int64
	nodes  int
	share  float64 // how much of all may be in one pool of capacity, that is one type in one zone
}

// add counts so much spot capacity more, or less.
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
