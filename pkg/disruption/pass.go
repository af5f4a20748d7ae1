package disruption

import (
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/provisioning/staticcapacity"
	"joiner.sh/pkg/scheduling/binpack"
)

// pass is one pass: what it has taken so far, and what it asks.
type pass struct {
	state         *State
	budget        *Budget
	eval          *Evaluator
	consolidation consolidation
	candidates    *candidates
	moving        bool                                    // a command of this pass moves pods
	replaced      map[string]int                          // by static pool: nodes that commands of this pass replace
	headroom      map[string]*staticcapacity.PoolHeadroom // by static pool
}

func newPass(st *State, pr *progress) *pass {
	budget, eval := newBudget(st.snapshot), newEvaluator(st)
	return &pass{state: st, budget: budget, eval: eval, consolidation: newConsolidation(eval),
		candidates: &candidates{state: st, budget: budget, failures: pr.failures, inRow: pr.inRow, ongoing: pr.ongoing},
		replaced:   map[string]int{}, headroom: map[string]*staticcapacity.PoolHeadroom{}}
}

// decidePlan looks after the commands under way, confirms or withdraws what was proposed before, and searches for more.
func decidePlan(st *State, m Memory) (Plan, Memory) {
	p, after, _ := decideMeasured(st, m)
	return p, after
}

// decideMeasured is decidePlan that also returns the work that it took.
func decideMeasured(st *State, m Memory) (Plan, Memory, int) {
	var p Plan
	pr := newProgress(st, m)
	pr.advanceCommands(&p)
	orphaned := pr.rollBackOrphanedTaints(m.OrphanedSince, &p)
	pr.taintFailedRevisions(&p)
	pr.taintPreviousRevisions(&p)
	ps := newPass(st, pr)
	ps.candidates.filterCandidates()
	p.Eligible = ps.candidates.eligibleByReason()
	ps.hibernatePools(&p)
	after := Memory{Quiet: st.quiet, Drifted: m.Drifted, Tried: m.Tried, LastWasDrift: m.LastWasDrift, Search: m.Search,
		Overruns: st.late, Report: m.Report, Failed: pr.failures, FailedInRow: pr.inRow,
		StalledSince: pr.stalled, OrphanedSince: orphaned}
	ps.confirmProposals(m.Proposals, &p, &after)
	moves := ps.searchCommands(&p, &after)
	p.NotDisrupted, p.BudgetsExhausted = ps.candidates.listNotDisrupted(moves), ps.budget.exhausted
	p.PodStability = st.changedStability(st.nodes)
	return p, after, ps.eval.meter.work
}

// confirmProposals begins what was proposed long enough ago and still holds, and forgets what does not hold any more. A
// proposal that is too young, or would move pods after another command of this pass that does, waits: each was asked
// about with all other pods where they are.
func (ps *pass) confirmProposals(all []Proposal, p *Plan, after *Memory) {
	if slices.ContainsFunc(all, func(x Proposal) bool { return x.Reason == v1.DisruptionUnderutilized }) {
		ps.recognizeInputs()
	}
	for _, old := range all {
		if old.Since.After(ps.state.now()) {
			continue // the clock was set back, and nobody knows how long it waits: it is found again
		}
		c, ok := ps.decideAgain(old, true)
		switch {
		case !ok:
			p.Withdrawn = append(p.Withdrawn, WithdrawnProposal{old.Reason, old.Claims, ps.withdrawalReason(old)})
		case ps.state.now().Before(old.Since.Add(confirmAfter)), ps.moving && ps.state.movesPods(c):
			after.Proposals = append(after.Proposals, old)
			p.Proposed = append(p.Proposed, c)
			ps.takeBudgets(c)
		default:
			ps.takeBudgets(c)
			p.Begin = append(p.Begin, c)
		}
	}
}

// recognizeInputs finds the digest of the inputs, so that what was asked in the search before is not asked again.
func (ps *pass) recognizeInputs() {
	kept := make([]refusal, len(ps.state.nodes))
	for i, n := range ps.state.nodes {
		kept[i] = n.notConsolidated
	}
	ps.eval.inputs = ps.digestInputs(ps.consolidationCandidates())
	for i, n := range ps.state.nodes {
		n.reviewConsolidation(kept[i])
	}
}

// withdrawalReason returns why a proposal does not hold any more, by the first of its nodes that has a reason.
func (ps *pass) withdrawalReason(old Proposal) string {
	for _, name := range old.Claims {
		n := ps.state.byClaim[name]
		if n == nil {
			return name + " is gone"
		}
		for _, r := range []refusal{n.blocked, n.notConsolidated} {
			if r.reason != "" {
				return name + ": " + r.why
			}
		}
	}
	switch {
	case ps.state.rules.steps == 0:
		return noTime
	case old.Reason == v1.DisruptionDrifted && ps.exceedsDriftLimit(ps.state.nodesOfClaims(old.Claims)):
		return "more of the nodes have pods to move than one command about drift replaces"
	}
	return "no case for " + string(old.Reason) + " any more"
}

// decideAgain decides about the nodes of a proposal anew. Of empty nodes those that still are go; else all must, as
// proposed. With patient the answer does not depend on how much work is left.
func (ps *pass) decideAgain(old Proposal, patient bool) (Command, bool) {
	var set []*stateNode
	for _, name := range old.Claims {
		n := ps.state.byClaim[name]
		if n != nil && ps.candidates.mayDisrupt(n, old.Reason) {
			set = append(set, n)
		}
	}
	if old.Reason == v1.DisruptionEmpty {
		return ps.deleteCommand(ps.budget.limitSet(set, old.Reason), old.Reason)
	}
	if len(set) < len(old.Claims) || len(ps.budget.limitSet(set, old.Reason)) < len(set) {
		return Command{}, false
	}
	switch {
	case len(set) == 0:
		return Command{}, false
	case set[0].inStaticPool():
		return ps.replaceStatic(set[0])
	case ps.state.rules.steps == 0, old.Reason == v1.DisruptionDrifted && ps.exceedsDriftLimit(set):
		return Command{}, false
	case old.Reason == v1.DisruptionDrifted && set[0].awaitsTrial() && len(set[0].moving) > 0:
		return ps.replaceForTrial(set[0], true)
	case old.Reason == v1.DisruptionDrifted:
		return ps.replaceDrifted(ps.eval.driftBaseline, set)
	}
	found := ps.consolidation.evaluateSet(set, patient)
	return found.Command, found.ok
}

// podMoves tells whether a command moves pods: one of this pass, and one that is only reported.
type podMoves struct{ acting, reported bool }

// searchCommands looks for new disruptions, those that matter most first, and then for what pools that only report
// would have.
func (ps *pass) searchCommands(p *Plan, after *Memory) (moves podMoves) {
	ps.eval.meter.startSearch()
	for _, c := range ps.findCommand(after) {
		p.Proposed = append(p.Proposed, c)
		after.Proposals = append(after.Proposals, Proposal{Reason: c.Reason, Claims: c.Claims, Since: ps.state.now()})
	}
	ps.candidates.reporting, ps.moving, moves.acting = true, false, ps.moving
	ps.eval.meter.startSearch()
	would := Memory{Drifted: after.Report.Drifted, LastWasDrift: after.Report.LastWasDrift, Search: after.Report.Search,
		Proposals: after.Report.Found}
	p.Reported = ps.findCommand(&would)
	after.Report = ReportState{Drifted: would.Drifted, LastWasDrift: would.LastWasDrift, Search: would.Search}
	for _, c := range p.Reported {
		if c.Reason == v1.DisruptionUnderutilized {
			after.Report.Found = append(after.Report.Found, Proposal{Reason: c.Reason, Claims: c.Claims})
		}
	}
	moves.reported = ps.moving
	return moves
}

// findCommand returns at most one command that moves pods, because two could be after the same room, one about empty
// nodes, and those of static pools, whose nodes bring their own room. Drift comes before price, but not twice in a row
// where something could be cheaper: else the nodes of one pool that drifted would keep all others waiting until the
// last of them is replaced.
func (ps *pass) findCommand(m *Memory) (out []Command) {
	out = ps.findStatic()
	order := []func(*Memory) (Command, bool){ps.findEmpty, ps.findDrifted, ps.findReportedAgain, ps.findCheaper}
	if m.LastWasDrift {
		order = []func(*Memory) (Command, bool){ps.findEmpty, ps.findReportedAgain, ps.findCheaper, ps.findDrifted}
	}
	for _, next := range order {
		if ps.moving {
			return out
		}
		if c, ok := next(m); ok {
			ps.takeBudgets(c)
			out = append(out, c)
			m.LastWasDrift = m.LastWasDrift && c.Reason == v1.DisruptionEmpty || c.Reason == v1.DisruptionDrifted
		}
	}
	if !ps.moving {
		m.LastWasDrift = false
	}
	return out
}

// findReportedAgain finds what was reported before and still holds, without a search.
func (ps *pass) findReportedAgain(m *Memory) (Command, bool) {
	if !ps.candidates.reporting {
		return Command{}, false
	}
	if len(m.Proposals) > 0 {
		ps.recognizeInputs()
	}
	for _, old := range m.Proposals {
		if c, ok := ps.recallReported(old); ok {
			return c, true
		}
		if c, ok := ps.decideAgain(old, false); ok {
			ps.keepReported(old, c)
			return c, true
		}
	}
	return Command{}, false
}

// AskAbout decides about one node as a pass does that looks at no other, and has as much work as it takes. It returns
// the command that the node would go by, and whether there is one. cache is kept from one question to the next; nil
// keeps nothing.
func AskAbout(s cluster.Snapshot, m Memory, sells binpack.Offerings, cache *Cache, claim string) (Command, bool) {
	var p Plan
	m.Overruns = Overruns{}
	st := newState(s, m, sells, cache)
	if st.byClaim[claim] == nil {
		return Command{}, false
	}
	pr := newProgress(st, m)
	pr.advanceCommands(&p)
	ps := newPass(st, pr)
	ps.candidates.filterCandidates()
	for _, r := range []v1.DisruptionReason{v1.DisruptionEmpty, v1.DisruptionDrifted, v1.DisruptionUnderutilized} {
		if c, ok := ps.decideAgain(Proposal{Reason: r, Claims: []string{claim}}, true); ok && len(c.Claims) > 0 {
			return c, true
		}
	}
	return Command{}, false
}
