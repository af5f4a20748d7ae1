package disruption

import (
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/binpack"
)

// AskAbout decides about one node as a pass does that looks at no other, and has as much work as it takes. It returns
// the command that the node would go by, or why it stays. Both are zero where there is no such NodeClaim. d is kept
// from one question to the next; nil keeps nothing.
func AskAbout(s cluster.Snapshot, m Memory, sells binpack.Offerings, d *Cache, claim string) (Command, NotDisrupted) {
	var p Plan
	m.Overruns = Overruns{}
	st := newState(s, m, sells, d)
	n := st.byClaim[claim]
	if n == nil {
		return Command{}, NotDisrupted{}
	}
	pr := newProgress(st, m)
	pr.advanceCommands(&p)
	ps := newPass(st, pr.failures, pr.ongoing)
	ps.candidates.filterCandidates()
	for _, r := range []v1.DisruptionReason{v1.DisruptionEmpty, v1.DisruptionDrifted, v1.DisruptionUnderutilized} {
		if c, ok := ps.decideAgain(Proposal{Reason: r, Claims: []string{claim}}, true); ok && len(c.Claims) > 0 {
			return c, NotDisrupted{}
		}
	}
	for _, x := range ps.candidates.listNotDisrupted(podMoves{}) {
		if x.Claim == claim {
			return Command{}, x
		}
	}
	return Command{}, NotDisrupted{}
}
