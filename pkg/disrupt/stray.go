package disrupt

import (
	"time"

	"joiner/pkg/interrupt"
)

// strayFor is how long a node must have been tainted with nothing under way before the taint goes: whoever condemns a node may be between
// its taint and what says why.
const strayFor = 2 * time.Minute

// stray takes the taint karpenter.sh/disrupted from nodes that nothing takes away (spec core.md §6.1): somebody removed the mark of their
// claim, or another controller began and never came back. They would take no pods for ever, and theirs would be given new nodes.
func (v *view) stray(before map[string]time.Time, p *Plan) {
	v.strays = map[string]time.Time{}
	for _, n := range v.nodes {
		name := n.Claim.Name
		_, marked := markOf(*n.Claim)
		if n.Node == nil || !tainted(n.Node) || marked || n.Deleting() || v.reports(n) || interrupt.LeaveOf(*n.Claim).Stands(v.now()) {
			continue
		}
		since, known := before[name]
		if !known || since.After(v.now()) { // or the clock was set back
			since = v.now()
		}
		v.strays[name] = since
		if !v.now().Before(since.Add(strayFor)) {
			p.Undo = append(p.Undo, Ended{Claims: []string{name}, Why: "its node carries the taint of a disruption, and none is under way"})
		}
	}
}
