package disruption

import (
	"cmp"
	"math"
	"slices"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/lists"
)

// findDrifted returns the command about drifted nodes, the oldest drift first: about all of those that have no pods to
// move, or about as many of the others as one command may have. Nodes that cannot be replaced take nothing of a budget;
// the next ones are asked about. Drift takes at most half of the questions of a pass and a quarter of its work, or a
// pool whose nodes cannot be replaced would keep all others from consolidation. The next pass goes on after the nodes
// that it asked about last.
func (ps *pass) findDrifted(m *Memory) (Command, bool) {
	var empty, set []*stateNode
	for _, n := range ps.state.nodes {
		switch {
		case n.inStaticPool() || n.awaitsTrial() && len(n.moving) > 0 ||
			!ps.candidates.mayDisrupt(n, v1.DisruptionDrifted):
		case len(n.moving) == 0:
			empty = append(empty, n)
		default:
			set = append(set, n)
		}
	}
	slices.SortFunc(empty, byDriftTime)
	slices.SortFunc(set, byDriftTime)
	mayAsk := func() bool {
		return ps.eval.meter.asked < ps.state.rules.steps/2 && ps.eval.meter.work < ps.eval.meter.workLimit()/2
	}
	if c, ok := ps.findTrial(m, mayAsk); ok {
		return c, true
	}
	if mayAsk() {
		if c, ok := ps.replaceDrifted(ps.eval.driftBaseline, ps.nextDrifted(empty)); ok {
			return c, true
		}
	}
	first := 1 + slices.IndexFunc(set, func(n *stateNode) bool { return n.Claim.Name == m.Drifted })
	set = slices.Concat(set[first:], set[:first])
	for mayAsk() {
		batch := ps.nextDrifted(set)
		if len(batch) == 0 {
			break
		}
		batch = batch[:min(len(batch), ps.state.rules.drifted)]
		m.Drifted = batch[len(batch)-1].Claim.Name
		if c, ok := ps.replaceDrifted(ps.eval.driftBaseline, batch); ok {
			return c, true
		}
		set = slices.DeleteFunc(set, func(n *stateNode) bool { return slices.Contains(batch, n) })
	}
	return Command{}, false
}

// nextDrifted returns those of the nodes that the next command is about, within budgets: the first one alone if it goes
// alone, or else all that need not.
func (ps *pass) nextDrifted(set []*stateNode) []*stateNode {
	set = ps.budget.limitSet(set, v1.DisruptionDrifted)
	if len(set) > 0 && ps.candidates.goesAlone(set[0]) {
		return set[:1]
	}
	return ps.candidates.mayShare(set)
}

// byDriftTime puts those first that drifted first.
func byDriftTime(a, b *stateNode) int {
	return cmp.Or(a.Claim.Condition(v1.ConditionDrifted).Since.Compare(b.Claim.Condition(v1.ConditionDrifted).Since),
		strings.Compare(a.Claim.Name, b.Claim.Name))
}

// exceedsDriftLimit reports whether more of the nodes have pods to move than one command about drift may have.
func (ps *pass) exceedsDriftLimit(set []*stateNode) bool {
	return lists.Count(set, func(n *stateNode) bool { return len(n.moving) > 0 }) > ps.state.rules.drifted
}

// replaceDrifted returns the command that replaces the nodes, whatever it costs, without those whose pods nobody can
// take. It includes nodes for pods that the scheduler may leave unschedulable, because the command would be rolled back
// again and again without.
func (ps *pass) replaceDrifted(from *baseline, set []*stateNode) (Command, bool) {
	for len(set) > 0 {
		p := ps.eval.planWithout(from, set)
		stuck := ps.consolidation.podsWithoutRoom(set, p)
		if len(stuck) == 0 {
			launches, schedulable := ps.eval.withOverflowNodes(from, set, p, math.Inf(1))
			if !schedulable {
				launches = p.Launches
			}
			return ps.state.newCommand(set, v1.DisruptionDrifted, launches), true
		}
		if most := ps.state.snapshot.Rules.MaxClaims; len(set) > 1 && most > 0 && len(p.Launches) >= most {
			return ps.replaceFirstDrifted(from, set)
		}
		for n, why := range stuck {
			n.refuseReplacement(refusal{IneligibleDrifted, "it has drifted, and " + why})
		}
		set = slices.DeleteFunc(slices.Clone(set), func(n *stateNode) bool { return stuck[n] != "" })
	}
	return Command{}, false
}

// replaceFirstDrifted returns the command for the first of the nodes that can be replaced by itself. Together they need
// more new nodes than a pass may make; a command about one node may have as many as it needs, or it would never be
// replaced.
func (ps *pass) replaceFirstDrifted(from *baseline, set []*stateNode) (Command, bool) {
	for _, n := range set {
		if c, ok := ps.replaceDrifted(from, []*stateNode{n}); ok {
			return c, true
		}
	}
	return Command{}, false
}
