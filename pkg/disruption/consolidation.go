package disruption

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/nomination"
	"joiner/pkg/model/plan"
)

// consolidation finds the command about a set of nodes that makes their pods run for less.
type consolidation struct {
	*State
	eval  *Evaluator
	guard priceGuard
}

func newConsolidation(ev *Evaluator) consolidation {
	return consolidation{ev.State, ev, priceGuard{ev.State}}
}

// consolidationCandidates are the nodes that consolidation may look at, by name.
func (ps *pass) consolidationCandidates() []*stateNode {
	var out []*stateNode
	for _, n := range ps.nodes {
		if ps.candidates.mayDisrupt(n, v1.DisruptionUnderutilized) {
			out = append(out, n)
		}
	}
	return out
}

// mostRetries is how often a set of nodes is asked about again without the nodes that stood in its way.
const mostRetries = 3

// evaluation is what the evaluation of a set of nodes comes to.
type evaluation struct {
	Command               // if ok
	ok       bool         // the set, or a part of it, is worth the command
	earnsUSD float64      // what the set earns by the packer's first answer, not a number where it gave none
	rest     []*stateNode // nodes to go on with in the next pass, if no work was left for them in this one
}

// evaluateSet finds the command that moves the pods of the nodes to where they cost less, if that pays. Nodes whose pods nobody can take
// are left out, and so are those that a launch would only bring back: the same offering for the same pool. With patient it asks for new nodes for
// all pods whatever work that is.
func (co consolidation) evaluateSet(set []*stateNode, patient bool) evaluation {
	set = withoutRefused(slices.SortedFunc(slices.Values(set), byWaste), IneligiblePodsUnschedulable, co.splitAffinityGroups(set))
	out := evaluation{earnsUSD: math.NaN()}
	for i := range mostRetries {
		if len(set) == 0 {
			return out
		}
		if i > 0 && !co.eval.meter.affords(co.eval.meter.of(podsOf(set), 0)) {
			out.rest = set
			return out
		}
		if c, ok, done := co.deleteOnly(set); done {
			out.Command, out.ok = c, ok
			return out
		}
		p, held := co.planPodMoves(set)
		if i == 0 && len(p.Unplaced) == 0 {
			out.earnsUSD = co.expectedEarningsUSD(set, p)
		}
		reason, refused := IneligiblePodsUnschedulable, co.podsWithoutRoom(set, p)
		if len(refused) == 0 {
			reason, refused = IneligibleSameOffering, pairSameOfferings(set, p.Launches)
		}
		switch {
		case len(refused) > 0:
		case held:
			out.Command, out.ok = co.replaceNominated(set, p)
			return out
		default:
			return co.replaceAndVerify(set, p, patient, out)
		}
		set = withoutRefused(set, reason, refused)
		if co.eval.estimateSavings(set) <= 0 {
			break // the rest has nothing to gain
		}
	}
	return out
}

// withoutRefused is the set without the nodes that have a reason to stay.
func withoutRefused(set []*stateNode, reason IneligibleReason, why map[*stateNode]string) []*stateNode {
	for n, w := range why {
		n.kept = refusal{reason, w}
	}
	return slices.DeleteFunc(slices.Clone(set), func(n *stateNode) bool { return why[n] != "" })
}

// planPodMoves is where the pods of the nodes would go, and whether that is because new nodes are held for some: what the packer says where that
// bears what the scheduler does with the others, or new nodes for what the scheduler leaves, whichever costs less.
func (co consolidation) planPodMoves(set []*stateNode) (p plan.Plan, held bool) {
	p = co.eval.planWithout(co.eval.saving, set)
	if len(p.Unplaced) > 0 || !nomination.CanNominateOwners(co.s.Rules, movingOf(set)) {
		return p, false
	}
	filled, held := co.eval.planOverflow(set, p.NodeByPod())
	if (!held || p.TotalPrice() < filled.TotalPrice()) && co.eval.survivesScheduling(set, p) {
		return p, true
	}
	if held {
		return filled, true
	}
	return p, false
}

// expectedEarningsUSD is what the set earns within the payback time by the plan for its pods.
func (co consolidation) expectedEarningsUSD(set []*stateNode, p plan.Plan) float64 {
	return co.eval.payback.gainUSD(set, p.TotalPrice())
}

// deleteOnly is the command without replacements, where the scheduler finds room for all pods. It is done unless some have none, or must be
// told where to go. Where pods spread the packer must agree: it reckons with the domains in which nodes may come.
func (co consolidation) deleteOnly(set []*stateNode) (c Command, ok, done bool) {
	b := co.eval.newPlacedSimulator()
	defer b.UndoTo(b.Mark())
	pods := co.eval.removeNodes(b, set)
	if len(b.Unschedulable(pods, nil, true)) > 0 {
		return Command{}, false, false
	}
	if slices.ContainsFunc(pods, func(p *cluster.Pod) bool { return len(p.Spread) > 0 }) {
		if p := co.eval.planWithout(co.eval.saving, set); len(p.Launches)+len(p.Unplaced) > 0 {
			return Command{}, false, false
		}
	}
	c, ok = co.payingCommand(set, nil)
	return c, ok, true
}

// splitAffinityGroups says of which nodes pods must share one node with others, all of which would move, and why that is not done together with other pods:
// the first of them decides where the others must be, and where the room there is gone by then no new node may take them.
func (co consolidation) splitAffinityGroups(set []*stateNode) map[*stateNode]string {
	out := map[*stateNode]string{}
	if !slices.ContainsFunc(set, (*stateNode).requiresSameNode) {
		return out
	}
	b := co.eval.newPlacedSimulator()
	defer b.UndoTo(b.Mark())
	all := co.eval.removeNodes(b, set)
	for _, n := range set {
		for _, p := range n.moving {
			if count := b.CoLocatedCount(p, all); count > 1 && count < len(all) {
				out[n] = "pod " + p.Key() + " must share a node with others that would move as well, and other pods may take their room"
			}
		}
	}
	return out
}

// requiresSameNode reports whether a pod of the node must share one with others.
func (n *stateNode) requiresSameNode() bool {
	return slices.ContainsFunc(n.moving, func(p *cluster.Pod) bool {
		return slices.ContainsFunc(p.Affinity, func(t cluster.AffinityTerm) bool { return t.Key == corev1.LabelHostname })
	})
}

// podsWithoutRoom says of which nodes some pod has no room elsewhere, and why.
func (co consolidation) podsWithoutRoom(set []*stateNode, p plan.Plan) map[*stateNode]string {
	out := map[*stateNode]string{}
	if len(p.Unplaced) == 0 {
		return out
	}
	why := map[string]string{}
	for _, u := range p.Unplaced {
		why[u.Pod] = u.Message()
	}
	for _, n := range set {
		for _, pod := range n.moving {
			if w, ok := why[pod.Key()]; ok {
				out[n] = "pod " + pod.Key() + " has no room elsewhere: " + w
				break
			}
		}
	}
	return out
}

// pairSameOfferings pairs launches with nodes that go and are the same offer of the same pool.
func pairSameOfferings(set []*stateNode, launches []plan.Launch) map[*stateNode]string {
	out := map[*stateNode]string{}
	for _, l := range launches {
		for i := len(set) - 1; i >= 0; i-- { // the least wasteful first
			if n := set[i]; out[n] == "" && n.offer == l.Choice.Offer && n.pool.Name == l.Pool {
				out[n] = "it would be replaced by its like"
				break
			}
		}
	}
	return out
}

// replaceNominated is the command if it pays, with its new nodes held.
func (co consolidation) replaceNominated(set []*stateNode, p plan.Plan) (Command, bool) {
	c, ok := co.payingCommand(set, p.Launches)
	if ok {
		c.Launches = nomination.NominateOwners(co.podOf, c.ID, c.Launches)
	}
	return c, ok
}

// replaceAndVerify adds to out the command if it pays, with what the scheduler makes of it reckoned in. Where that leaves pods without a place, because
// it does not fill the last gaps of nodes as the packer does, new nodes for all pods of the set may still pay.
func (co consolidation) replaceAndVerify(set []*stateNode, p plan.Plan, patient bool, out evaluation) evaluation {
	var sturdy bool
	if out.Command, out.ok, sturdy = co.verifyReplacement(set, p); sturdy {
		return out
	}
	if len(p.Existing) > 0 {
		var fresh plan.Plan
		if fresh, out.rest = co.planAllNewNodes(set, patient); len(fresh.Launches) > 0 && len(pairSameOfferings(set, fresh.Launches)) == 0 {
			if out.Command, out.ok, sturdy = co.verifyReplacement(set, fresh); sturdy {
				return out
			}
		}
	}
	for _, n := range set {
		n.kept = refusal{IneligiblePodsUnschedulable, "the scheduler may leave pods of it without a node"}
	}
	out.Command, out.ok = Command{}, false
	return out
}

// planAllNewNodes is the plan of new nodes for all pods of the set, none where those cannot pay. Unless patient it returns the set as rest where the
// pass has no work left for the question.
func (co consolidation) planAllNewNodes(set []*stateNode, patient bool) (p plan.Plan, rest []*stateNode) {
	pods := movingOf(set)
	switch {
	case co.eval.payback.gainUSD(set, co.eval.minCosts(co.eval.newPlacedSimulator(), pods)) <= 0:
		return plan.Plan{}, nil
	case !patient && !co.eval.meter.affords(co.eval.meter.of(len(pods), len(pods))):
		return plan.Plan{}, set
	}
	return plan.Plan{Launches: co.eval.launchesFor(pods, set, nil)}, nil
}

// verifyReplacement is the command of the plan if it pays, and whether the scheduler gives every pod a place, with what is launched besides for that.
func (co consolidation) verifyReplacement(set []*stateNode, p plan.Plan) (c Command, ok, sturdy bool) {
	c, ok = co.payingCommand(set, p.Launches)
	if !ok {
		return c, false, true
	}
	launches, sturdy := co.eval.withOverflowNodes(co.eval.saving, set, p, co.eval.payback.netEarningsUSD(c)/(co.rules.payback.Hours()+sideBySide))
	if sturdy && len(launches) > len(p.Launches) {
		c, ok = co.payingCommand(set, launches)
	}
	return c, ok, sturdy
}

// payingCommand is the command if what it saves pays for the moves within the payback time and passes the thresholds of the pools.
func (co consolidation) payingCommand(set []*stateNode, launches []plan.Launch) (Command, bool) {
	launches, ok := co.guard.guardReplacements(set, launches)
	if !ok {
		return Command{}, false
	}
	c := co.newCommand(set, v1.DisruptionUnderutilized, launches)
	var refused refusal
	switch {
	case !co.eval.payback.passesThresholds(set, c):
		refused = refusal{IneligibleThreshold, "it would save less than its NodePool asks for"}
	case !co.eval.payback.passesBalanced(set, c):
		refused = refusal{IneligibleBalanced, "it would save too little for the disruption, as the policy Balanced weighs it"}
	case co.eval.payback.netEarningsUSD(c) <= 0:
		refused = refusal{IneligiblePayback, "moving its pods costs more than the cheaper nodes save within " + co.rules.payback.String()}
	default:
		co.eval.payback.writePayback(c)
		return c, true
	}
	for _, n := range set {
		n.kept = refused
	}
	return Command{}, false
}
