package disruption

import (
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
)

// MayEmpty returns the nodes, by name, whose pods a pass may move: the volumes of these must be known to it. These are
// more nodes than a pass finds candidates, because nothing is calculated for it, and none whose pods stay for sure.
func MayEmpty(s cluster.Snapshot) map[string]bool {
	reasons, on := reasonsToMove(s), s.PodsByNode()
	obstacles := s.Obstacles()
	out := map[string]bool{}
	for _, node := range s.StateNodes() {
		if node.Claim == nil || !node.Initialized() {
			continue
		}
		drifts := node.Claim.Is(v1.ConditionDrifted) && reasons[node.Pool()][v1.DisruptionDrifted]
		if _, marked := markOf(*node.Claim); !marked {
			word, _ := obstacles.Of(on[node.Name()])
			switch {
			case !drifts && !reasons[node.Pool()][v1.DisruptionUnderutilized]:
				continue
			case word != "" && !(drifts && node.Claim.TerminationGrace != nil):
				continue
			}
		}
		out[node.Name()] = true
	}
	return out
}

// reasonsToMove returns why pods of nodes of a pool may be moved now, by the name of the pool. Nodes of static pools
// are replaced whatever pods they have.
func reasonsToMove(s cluster.Snapshot) map[string]map[v1.DisruptionReason]bool {
	counts := budgets.CountNodes(s)
	out := map[string]map[v1.DisruptionReason]bool{}
	for _, p := range s.Pools {
		if p.Static {
			continue
		}
		allowed := func(reason v1.DisruptionReason) bool {
			n, err := budgets.AllowedDisruptions(p.Disruption, reason, counts[p.Name].Total, s.Now)
			return n > 0 && err == nil
		}
		out[p.Name] = map[v1.DisruptionReason]bool{
			v1.DisruptionDrifted: allowed(v1.DisruptionDrifted),
			v1.DisruptionUnderutilized: !p.Disruption.Never &&
				p.Disruption.Policy != string(v1.ConsolidationWhenEmpty) &&
				allowed(v1.DisruptionUnderutilized),
		}
	}
	return out
}
