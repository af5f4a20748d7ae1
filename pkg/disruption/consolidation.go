package disruption

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/model/plan"
)

// consolidation finds the command about a set of nodes that makes their pods run for less.
type consolidation struct {
	state *State
	eval  *Evaluator
	guard priceGuard
}

func newConsolidation(ev *Evaluator) consolidation {
	return consolidation{ev.state, ev, newPriceGuard(ev.state)}
}

// consolidationCandidates returns the nodes that consolidation may look at, by name.
func (ps *pass) consolidationCandidates() []*stateNode {
	return lists.Where(ps.state.nodes,
		func(n *stateNode) bool { return ps.candidates.mayDisrupt(n, v1.DisruptionUnderutilized) })
}

// maxRounds caps how often a plan about a set of nodes is made: each time without the nodes that stood in the way, or
// with nodes for the pods that were left. With one four clusters of 100 nodes cost 0.7 % more, with six 0.1 % less.
const maxRounds = 3

// evaluation is the result of evaluating a set of nodes.
type evaluation struct {
	Command               // if ok
	ok       bool         // the set, or a part of it, is worth the command
	earnsUSD float64      // what the set earns by the packer's first answer, not a number where it gave none
	rest     []*stateNode // nodes to go on with in the next pass, if no work was left for them in this one
}

// evaluateSet finds the command that moves the pods of the nodes to where they cost less, if that pays. Nodes whose
// pods nobody can take are left out, and so are those that a launch would only bring back: the same offering for the
// same pool. With patient it asks for new nodes for all pods whatever work that is.
func (co consolidation) evaluateSet(set []*stateNode, patient bool) evaluation {
	set = withoutRefused(slices.SortedFunc(slices.Values(set), byWaste), IneligiblePodsUnschedulable,
		co.splitAffinityGroups(set))
	out := evaluation{earnsUSD: math.NaN()}
	for i := range maxRounds {
		if len(set) == 0 {
			return out
		}
		if i > 0 && !co.eval.meter.canAfford(co.eval.meter.questionWork(podsOf(set), 0)) {
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

// withoutRefused returns the set without the nodes that have an entry in why, which it records on them.
func withoutRefused(set []*stateNode, reason IneligibleReason, why map[*stateNode]string) []*stateNode {
	for n, w := range why {
		n.reviewConsolidation(refusal{reason, w})
	}
	return slices.DeleteFunc(slices.Clone(set), func(n *stateNode) bool { return why[n] != "" })
}

// planPodMoves returns where the pods of the nodes would go, and whether new nodes are held for some. It takes the plan
// of the packer if that survives what the scheduler does with the other pods, or new nodes for the pods that the
// scheduler leaves, whichever costs less.
func (co consolidation) planPodMoves(set []*stateNode) (p plan.Plan, held bool) {
	p = co.eval.planWithout(co.eval.consolidationBaseline, set)
	if len(p.Unplaced) > 0 || !nomination.CanNominateOwners(co.state.snapshot.Rules, movingOf(set)) {
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

// expectedEarningsUSD returns what the set earns within the payback time by the plan for its pods.
func (co consolidation) expectedEarningsUSD(set []*stateNode, p plan.Plan) float64 {
	return co.eval.payback.gainUSD(set, p.TotalPrice())
}

// deleteOnly returns the command without replacements, if the scheduler finds room for all pods. It is not done if some
// have none, or if the packer must say where they go. Where pods spread, the packer must agree, because it counts
// domains in which nodes may come.
func (co consolidation) deleteOnly(set []*stateNode) (c Command, ok, done bool) {
	b := co.eval.consolidationSimulator()
	defer b.UndoTo(b.Mark())
	pods := co.eval.removeNodes(b, set)
	if len(b.Unschedulable(pods, nil, true)) > 0 {
		return Command{}, false, false
	}
	if slices.ContainsFunc(pods, func(p *cluster.Pod) bool { return len(p.Spread) > 0 }) {
		if p := co.eval.planWithout(co.eval.consolidationBaseline, set); len(p.Launches)+len(p.Unplaced) > 0 {
			return Command{}, false, false
		}
	}
	c, ok = co.payingCommand(set, nil)
	return c, ok, true
}

// splitAffinityGroups returns the nodes with pods that must share one node with other pods of the set, and why they do
// not go together: the first of these pods decides where the others must be, and where that room is gone by then no new
// node may take them.
func (co consolidation) splitAffinityGroups(set []*stateNode) map[*stateNode]string {
	out := map[*stateNode]string{}
	if !slices.ContainsFunc(set, (*stateNode).requiresSameNode) {
		return out
	}
	b := co.eval.consolidationSimulator()
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
		return slices.ContainsFunc(p.Affinity, func(t cluster.AffinityTerm) bool {
			return t.Key == corev1.LabelHostname
		})
	})
}

// podsWithoutRoom returns the nodes of which some pod has no room elsewhere by the plan, and why.
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
				out[n] = co.state.describeNoRoom(pod.Key(), w)
				break
			}
		}
	}
	return out
}

// describeNoRoom says why the pod has no room elsewhere, where the packer says why.
func (st *State) describeNoRoom(pod, why string) string {
	if restricted := st.restricted[pod]; restricted != "" {
		why = restricted + "; " + why
	}
	return "pod " + pod + " has no room elsewhere: " + why
}

// pairSameOfferings returns the nodes that a launch would replace by the same offering of the same pool.
func pairSameOfferings(set []*stateNode, launches []plan.Launch) map[*stateNode]string {
	out := map[*stateNode]string{}
	for _, l := range launches {
		for i := len(set) - 1; i >= 0; i-- { // the least wasteful first
			if n := set[i]; out[n] == "" && n.offering == l.Choice.OfferingKey && n.pool.Name == l.Pool {
				out[n] = "it would be replaced by its like"
				break
			}
		}
	}
	return out
}

// replaceNominated returns the command if it pays, with its new nodes held for the pods that they are for.
func (co consolidation) replaceNominated(set []*stateNode, p plan.Plan) (Command, bool) {
	c, ok := co.payingCommand(set, p.Launches)
	if ok {
		c.Launches = nomination.NominateOwners(co.state.podOf, c.ID, c.Launches)
	}
	return c, ok
}

// replaceAndVerify adds to out the command if it pays, with what the scheduler makes of it reckoned in. Where that
// leaves pods without a place, because it does not fill the last gaps of nodes as the packer does, new nodes for all
// pods of the set may still pay.
func (co consolidation) replaceAndVerify(set []*stateNode, p plan.Plan, patient bool, out evaluation) evaluation {
	var schedulable bool
	if out.Command, out.ok, schedulable = co.verifyReplacement(set, p); schedulable {
		return out
	}
	if len(p.Existing) > 0 {
		var fresh plan.Plan
		if fresh, out.rest = co.planAllNewNodes(set, patient); len(fresh.Launches) > 0 &&
			len(pairSameOfferings(set, fresh.Launches)) == 0 {
			if out.Command, out.ok, schedulable = co.verifyReplacement(set, fresh); schedulable {
				return out
			}
		}
	}
	refuseSet(set, refusal{IneligiblePodsUnschedulable, "the scheduler may leave pods of it without a node"})
	out.Command, out.ok = Command{}, false
	return out
}

// planAllNewNodes returns the plan of new nodes for all pods of the set, empty where those cannot pay. Unless patient,
// it returns the set as rest where the pass has no work left for the question.
func (co consolidation) planAllNewNodes(set []*stateNode, patient bool) (p plan.Plan, rest []*stateNode) {
	pods := movingOf(set)
	switch {
	case co.eval.payback.gainUSD(set, co.eval.minCosts(co.eval.consolidationSimulator(), pods)) <= 0:
		return plan.Plan{}, nil
	case !patient && !co.eval.meter.canAfford(co.eval.meter.questionWork(len(pods), len(pods))):
		return plan.Plan{}, set
	}
	return plan.Plan{Launches: co.eval.launchesFor(pods, set, nil)}, nil
}

// verifyReplacement returns the command of the plan if it pays, with nodes added for pods that the scheduler would
// leave unschedulable. schedulable is false if no number of nodes worth their price helps those.
func (co consolidation) verifyReplacement(set []*stateNode, p plan.Plan) (c Command, ok, schedulable bool) {
	c, ok = co.payingCommand(set, p.Launches)
	if !ok {
		return c, false, true
	}
	launches, schedulable := co.eval.withOverflowNodes(co.eval.consolidationBaseline, set, p,
		co.eval.payback.affordablePrice(c))
	if schedulable && len(launches) > len(p.Launches) {
		c, ok = co.payingCommand(set, launches)
	}
	return c, ok, schedulable
}

// payingCommand returns the command if it pays for the moves within the payback time and passes the thresholds of the
// pools. Otherwise it records the reason on the nodes.
func (co consolidation) payingCommand(set []*stateNode, launches []plan.Launch) (Command, bool) {
	launches, ok := co.guard.guardReplacements(set, launches)
	if !ok {
		return Command{}, false
	}
	c := co.state.newCommand(set, v1.DisruptionUnderutilized, launches)
	var refused refusal
	switch {
	case !co.eval.payback.passesThresholds(set, c):
		refused = refusal{IneligibleThreshold, "it would save less than its NodePool asks for"}
	case !co.eval.payback.passesBalanced(set, c):
		refused = refusal{IneligibleBalanced, "it would save too little for the disruption, as the policy Balanced weighs it"}
	case co.eval.payback.netEarningsUSD(c) <= 0:
		refused = refusal{IneligiblePayback, "moving its pods costs more than the cheaper nodes save within " +
			co.eval.payback.within.String()}
	default:
		co.eval.payback.writePayback(c)
		return c, true
	}
	refuseSet(set, refused)
	return Command{}, false
}
