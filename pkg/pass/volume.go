package pass

import (
	"joiner/pkg/cluster"
	"joiner/pkg/interrupt"
	"joiner/pkg/static"
)

// MayEmpty are the nodes, by name, that are not going away yet and whose pods a pass may find other room for: the volumes of these must be known
// to it.
func MayEmpty(s cluster.Snapshot) map[string]bool {
	surplus := map[string]bool{}
	for _, r := range static.Surplus(s) {
		surplus[r.Claim] = true
	}
	out := map[string]bool{}
	for _, h := range s.Hosts() {
		if h.Claim != nil && (surplus[h.Claim.Name] || interrupt.LeaveOf(*h.Claim).Stands(s.Now)) {
			out[h.Name()] = true
		}
	}
	return out
}
