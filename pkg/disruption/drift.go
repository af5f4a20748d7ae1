package disruption

import (
	"cmp"
	"math"
	"slices"
	"strings"

	v1 "joiner/pkg/api/v1"
)

// findDrifted finds drifted nodes, the oldest drift first: all that have no pods to move, and then so many that have as the rules say. Nodes
// that cannot be replaced take nothing of a budget: the next ones are asked about. It takes at most half of the questions of a pass and
// little of its work, or a pool whose nodes cannot be replaced would keep all others from consolidation. The next pass goes on after the
// nodes that it asked about last.
func (ps *pass) findDrifted(m *Memory) (Command, bool) {
	var empty, set []*stateNode
	for _, n := range ps.nodes {
		switch {
		case n.inStaticPool() || !ps.candidates.mayDisrupt(n, v1.DisruptionDrifted):
		case len(n.moving) == 0:
			empty = append(empty, n)
		default:
			set = append(set, n)
		}
	}
	slices.SortFunc(empty, byDrift)
	slices.SortFunc(set, byDrift)
	mayAsk := func() bool {
		return ps.eval.meter.asked < ps.rules.steps/2 && ps.eval.meter.work < ps.eval.meter.most()/4
	}
	if mayAsk() {
		if c, ok := ps.replaceDrifted(ps.budget.Limit(empty, v1.DisruptionDrifted)); ok {
			return c, true
		}
	}
	first := 1 + slices.IndexFunc(set, func(n *stateNode) bool { return n.Claim.Name == m.Drifted })
	set = slices.Concat(set[first:], set[:first])
	for mayAsk() {
		batch := ps.budget.Limit(set, v1.DisruptionDrifted)
		if len(batch) == 0 {
			break
		}
		batch = batch[:min(len(batch), ps.rules.drifted)]
		m.Drifted = batch[len(batch)-1].Claim.Name
		if c, ok := ps.replaceDrifted(batch); ok {
			return c, true
		}
		set = slices.DeleteFunc(set, func(n *stateNode) bool { return slices.Contains(batch, n) })
	}
	return Command{}, false
}

// byDrift puts those first that drifted first.
func byDrift(a, b *stateNode) int {
	return cmp.Or(a.Claim.Condition(v1.ConditionDrifted).Since.Compare(b.Claim.Condition(v1.ConditionDrifted).Since),
		strings.Compare(a.Claim.Name, b.Claim.Name))
}

// beyondOne reports whether the nodes have more among them that have pods to move than one command about drift may have.
func (ps *pass) beyondOne(set []*stateNode) bool {
	busy := 0
	for _, n := range set {
		busy += min(len(n.moving), 1)
	}
	return busy > ps.rules.drifted
}

// replaceDrifted is the command that replaces the nodes, whatever it costs, without those whose pods nobody can take. It brings the nodes that pods
// need which the scheduler may leave without a place where the plan has none to spare: such a command would be taken back again and again.
func (ps *pass) replaceDrifted(set []*stateNode) (Command, bool) {
	for len(set) > 0 {
		p := ps.eval.planWithout(ps.eval.renewal, set)
		stuck := ps.consolidation.podsWithoutRoom(set, p)
		if len(stuck) == 0 {
			launches, sturdy := ps.eval.withOverflowNodes(ps.eval.renewal, set, p, math.Inf(1))
			if !sturdy {
				launches = p.Launches
			}
			return ps.newCommand(set, v1.DisruptionDrifted, launches), true
		}
		if most := ps.s.Rules.MaxClaims; len(set) > 1 && most > 0 && len(p.Launches) >= most {
			return ps.driftedAlone(set)
		}
		for n, why := range stuck {
			n.drift = refusal{IneligibleDrifted, "it has drifted, and " + why}
		}
		set = slices.DeleteFunc(slices.Clone(set), func(n *stateNode) bool { return stuck[n] != "" })
	}
	return Command{}, false
}

// driftedAlone is the command for the first of the nodes that can be replaced by itself. Together they need more new nodes than a pass may
// make, and a command about one node may have as many as it needs: it would never be replaced otherwise.
func (ps *pass) driftedAlone(set []*stateNode) (Command, bool) {
	for _, n := range set {
		if c, ok := ps.replaceDrifted([]*stateNode{n}); ok {
			return c, true
		}
	}
	return Command{}, false
}
