package provisioning

import (
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/provisioning/staticcapacity"
)

// MayEmpty are the nodes, by name, that are not going away yet and whose pods a pass may find other room for: the
// volumes of these must be known to it.
func MayEmpty(s cluster.Snapshot) map[string]bool {
	surplus := lists.Set(staticcapacity.SurplusNodes(s), func(r plan.Removal) string { return r.Claim })
	out := map[string]bool{}
	for _, node := range s.StateNodes() {
		if node.Claim != nil && (surplus[node.Claim.Name] || interruption.LeaveOf(*node.Claim).StillHolds(s.Now)) {
			out[node.Name()] = true
		}
	}
	return out
}
