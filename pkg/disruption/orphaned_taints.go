package disruption

import (
	"time"

	"joiner.sh/pkg/nodeclaim/interruption"
)

// orphanedFor is the time that a node must have been tainted with nothing under way before the taint is removed.
// Whoever taints a node may not have written yet what for.
const orphanedFor = 2 * time.Minute

// rollBackOrphanedTaints removes the taint karpenter.sh/disrupted from nodes that nothing takes away: somebody removed
// the mark of their claim, or another controller began and never came back. They would take no pods for ever, and
// theirs would be given new nodes. It returns since when each node has been such a one.
func (pr *progress) rollBackOrphanedTaints(before map[string]time.Time, p *Plan) map[string]time.Time {
	out := map[string]time.Time{}
	for _, n := range pr.state.nodes {
		name := n.Claim.Name
		_, marked := markOf(*n.Claim)
		if n.Node == nil || !n.Node.IsTaintedDisrupted() || marked || n.Deleting() || pr.state.isReportOnly(n) ||
			interruption.LeaveOf(*n.Claim).StillHolds(pr.state.now()) {
			continue
		}
		since, known := before[name]
		if !known || since.After(pr.state.now()) { // or the clock was set back
			since = pr.state.now()
		}
		out[name] = since
		if !pr.state.now().Before(since.Add(orphanedFor)) {
			p.RollBack = append(p.RollBack, EndedCommand{Claims: []string{name},
				Why: "its node carries the taint of a disruption, and none is under way"})
		}
	}
	return out
}
