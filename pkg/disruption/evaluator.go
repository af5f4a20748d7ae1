package disruption

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"joiner.sh/pkg/disruption/simulator"
	"joiner.sh/pkg/model/cluster"
)

// Evaluator answers what would be if nodes were gone: where their pods go, what must be launched for them, and what
// that saves. It asks the packer and the simulator. Nodes that commands of this pass have taken are gone for it
// already.
type Evaluator struct {
	state                 *State
	payback               payback
	driftBaseline         *baseline // of drift
	consolidationBaseline *baseline // of consolidation
	trial                 *baseline // of nodes that a NodeRollout replaces, once asked for
	meter                 workMeter
	inputs                uint64          // digest of all that the answers depend on, 0 while it is not known
	podsWithLaunch        map[string]bool // by key: pods for which commands of this pass launch nodes

	podBuffer []cluster.Pod            // of the last question, their memory is used again
	podPrices map[string]float64       // what the pods that move are worth, by key, once asked
	minCostOf map[*cluster.Pod]float64 // of those that stand for all that are like them, USD per hour
	volumes   *cluster.VolumeLimits    // what nodes attach, once asked for
}

func newEvaluator(st *State) *Evaluator {
	ev := &Evaluator{state: st, payback: newPayback(st),
		meter: workMeter{steps: st.rules.steps, nodes: len(st.snapshot.Nodes)}, podsWithLaunch: map[string]bool{},
		minCostOf: map[*cluster.Pod]float64{}}
	ev.driftBaseline, ev.consolidationBaseline = st.newBaselines()
	return ev
}

// estimateSavings returns what the set may earn within the payback time when it goes, USD.
func (ev *Evaluator) estimateSavings(set []*stateNode) float64 {
	usd, _ := ev.simulateSavings(set)
	return usd
}

// simulateSavings returns what the set may earn within the payback time when it goes, USD, and the pods for which new
// nodes have to be made.
func (ev *Evaluator) simulateSavings(set []*stateNode) (usd float64, left []*cluster.Pod) {
	b := ev.consolidationSimulator()
	defer b.UndoTo(b.Mark())
	left = b.Bind(ev.removeNodes(b, set), nil)
	return ev.payback.gainUSD(set, ev.minCosts(b, left)), left
}

// minCosts returns the least that the pods cost on new nodes, USD per hour, with a margin.
func (ev *Evaluator) minCosts(b *simulator.Simulator, pods []*cluster.Pod) (usd float64) {
	for _, p := range pods {
		usd += ev.minCost(b, p) * costMargin
	}
	return usd
}

// estimateNode returns what the node may earn within the payback time when pods without room elsewhere get new nodes,
// and whether it is more than nothing.
func (ev *Evaluator) estimateNode(b *simulator.Simulator, n *stateNode, left []*cluster.Pod, replace bool) (usd float64,
	ok bool) {
	if len(left) > 0 && !replace {
		return 0, false
	}
	usd = ev.payback.gainUSD([]*stateNode{n}, ev.minCosts(b, left))
	return usd, usd > 0
}

// minCost returns the least that a pod like this one costs on new nodes, USD per hour, or infinity.
func (ev *Evaluator) minCost(b *simulator.Simulator, p *cluster.Pod) float64 {
	p = b.Representative(p)
	usd, known := ev.minCostOf[p]
	if !known {
		usd = ev.podPrice(p)
		ev.minCostOf[p] = usd
	}
	return usd
}

// podPrice returns what new nodes cost at least for the pod, USD per hour, shared as well as it can be with all pods
// that move, or infinity.
func (ev *Evaluator) podPrice(p *cluster.Pod) float64 {
	if ev.podPrices == nil {
		ev.podPrices = ev.state.resolveOfferings().PodPrices(ev.state.snapshot, MayEmpty(ev.state.snapshot))
	}
	if usd, ok := ev.podPrices[p.Key()]; ok {
		return usd
	}
	if usd, ok := ev.state.resolveOfferings().MinPodPrice(*p); ok {
		return usd
	}
	return math.Inf(1)
}

// departingNodes returns the names of the nodes that this pass has taken.
func (ev *Evaluator) departingNodes() map[string]bool {
	return ev.state.nodeNames(func(n *stateNode) bool { return n.taken })
}

// departingWithPods returns the names of the nodes that this pass has taken, without those of static pools, whose
// replacements have room for their pods.
func (ev *Evaluator) departingWithPods() map[string]bool {
	return ev.state.nodeNames(func(n *stateNode) bool { return n.taken && !n.inStaticPool() })
}

// sortByWaste sorts nodes so that those come first that waste most for each pod that would move.
func (ev *Evaluator) sortByWaste(all []*stateNode) {
	b := ev.consolidationSimulator()
	for _, n := range all {
		n.waste = n.price
		for _, p := range n.moving {
			if usd := ev.minCost(b, p); !math.IsInf(usd, 1) {
				n.waste -= usd
			}
		}
	}
	slices.SortFunc(all, byWaste)
}

func byWaste(a, b *stateNode) int {
	return cmp.Or(cmp.Compare(b.waste/b.cost, a.waste/a.cost), strings.Compare(a.Claim.Name, b.Claim.Name))
}

// byTotalWaste puts those first that waste most in all.
func byTotalWaste(a, b *stateNode) int {
	return cmp.Or(cmp.Compare(b.waste, a.waste), strings.Compare(a.Claim.Name, b.Claim.Name))
}
