package disruption

import (
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// ChangedSince returns what has changed on the nodes of a command since it was decided, or nothing. It compares a
// snapshot read just now with what the deciding pass remembered, and looks at neither prices nor room.
func ChangedSince(s cluster.Snapshot, c Command, decided Memory) string {
	index := newNodeIndex(s)
	obstacles := s.Obstacles()
	for _, name := range c.Claims {
		n := index.byClaim[name]
		switch {
		case n == nil || n.Node == nil:
			return name + " or its node is gone"
		case n.MarkedForDeletion():
			return name + ": it is leaving already"
		case isProtected(n):
			return name + ": its node carries " + v1.AnnotationDoNotDisrupt
		case sumPodEvents(n.pods) != decided.Quiet[name].Sum:
			return name + ": its pods are others by now"
		case c.Reason == v1.DisruptionDrifted && n.Claim.TerminationGrace != nil:
			continue
		}
		if _, why := obstacles.Of(n.pods); why != "" {
			return name + ": " + why
		}
	}
	return ""
}
