package capacity

import (
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/rounding"
)

// SpotUsage is the spot capacity of a cluster, in millicores.
type SpotUsage struct {
	ByPool map[instancetypes.OfferingKey]int64 // by spot offering
	total  int64
	Nodes  int     // spot nodes, claims without a node among them
	share  float64 // how much of all may be in one pool of capacity, that is one type in one zone
}

// AreFew reports whether there is no limit for one spot node more.
func (u SpotUsage) AreFew() bool { return u.hasNoLimit(u.Nodes + 1) }

// hasNoLimit reports whether there are so few nodes that a single one elsewhere is more than the limit asks for: up to
// four of which 80 % may be in one pool of capacity.
func (u SpotUsage) hasNoLimit(nodes int) bool { return float64(nodes)*(1-u.share) < 1-rounding.Error }

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
	return o.CapacityType == instancetypes.Spot && !u.hasNoLimit(u.Nodes) &&
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
