package capacity

import "joiner.sh/pkg/model/instancetypes"

// fewSpotNodes is up to how many spot nodes there is no such limit.
const fewSpotNodes = 4

// SpotUsage is the spot capacity of a cluster, in millicores.
type SpotUsage struct {
	ByPool map[instancetypes.OfferingKey]int64
	total  int64
	Nodes  int
	share  float64 // how much of all may be in one pool of capacity, that is one type in one zone
}

// AreFew reports whether one more spot node would be within what no limit is for.
func (u SpotUsage) AreFew() bool { return u.Nodes < fewSpotNodes }

// Add counts so much spot capacity more, or less.
func (u *SpotUsage) Add(o instancetypes.OfferingKey, cpu int64, nodes int) {
	if o.CapacityType == instancetypes.Spot {
		u.ByPool[o] += cpu
		u.total += cpu
		u.Nodes += nodes
	}
}

// MostInPool returns the most spot capacity that one pool of capacity may have, in millicores.
func (u SpotUsage) MostInPool() int64 { return int64(u.share * float64(u.total)) }

// ExceedsShare reports whether the pool of capacity has more than its share.
func (u SpotUsage) ExceedsShare(o instancetypes.OfferingKey) bool {
	return o.CapacityType == instancetypes.Spot && u.Nodes > fewSpotNodes &&
		float64(u.ByPool[o]) > u.share*float64(u.total)
}

// AnyExceedsShare reports whether any pool of capacity has more than its share.
func (u SpotUsage) AnyExceedsShare() bool {
	for o := range u.ByPool {
		if u.ExceedsShare(o) {
			return true
		}
	}
	return false
}
