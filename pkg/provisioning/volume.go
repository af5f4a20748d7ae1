package provisioning

import (
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/provisioning/staticcapacity"
)

// MayEmpty are the nodes, by name, that are not going away yet and whose pods a pass may find other room for: the
// volumes of these must be known to it.
func MayEmpty(s cluster.Snapshot) map[string]bool {
	surplus := map[string]bool{}
	for _, r := range staticcapacity.SurplusNodes(s) {
		surplus[r.Claim] = true
	}
	out := map[string]bool{}
	for _, h := range s.StateNodes() {
		if h.Claim != nil && (surplus[h.Claim.Name] || interruption.LeaveOf(*h.Claim).StillHolds(s.Now)) {
			out[h.Name()] = true
		}
	}
	return out
}
