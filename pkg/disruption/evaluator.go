package disruption

import (
	"cmp"
	"slices"
	"strings"

	"joiner/pkg/disruption/simulator"
	"joiner/pkg/model/cluster"
)

// Evaluator answers what would be if nodes were gone: where their pods go, what must be launched for them, and what that saves. It asks the packer
// and the simulator. Nodes that commands of this pass have taken are gone for it already.
type Evaluator struct {
	*State
	payback payback
	renewal *baseline // of drift
	saving  *baseline // of consolidation
	meter   workMeter
	world   uint64          // digest of all that the answers depend on, 0 while it is not known
	housed  map[string]bool // by key: pods for which commands of this pass launch nodes

	asking    []cluster.Pod            // of the last question, their memory is used again
	worth     map[string]float64       // what the pods that move are worth, by key, once asked
	minCostOf map[*cluster.Pod]float64 // of those that stand for all that are like them, USD per hour
}

func newEvaluator(st *State) *Evaluator {
	ev := &Evaluator{State: st, payback: payback{st}, meter: workMeter{steps: st.rules.steps, nodes: len(st.s.Nodes)}, housed: map[string]bool{}, minCostOf: map[*cluster.Pod]float64{}}
	ev.renewal, ev.saving = st.baselines()
	return ev
}

// estimateSavings is what the set may earn within the payback time when it goes.
func (ev *Evaluator) estimateSavings(set []*stateNode) float64 {
	usd, _ := ev.simulateSavings(set)
	return usd
}

// simulateSavings is hope with the pods for which new nodes have to be made.
func (ev *Evaluator) simulateSavings(set []*stateNode) (usd float64, left []*cluster.Pod) {
	b := ev.newPlacedSimulator()
	defer b.UndoTo(b.Mark())
	left = b.Bind(ev.removeNodes(b, set), nil)
	return ev.payback.gainUSD(set, ev.minCosts(b, left)), left
}

// minCosts is the least that the pods cost on new nodes, USD per hour, as those share them best with all others.
func (ev *Evaluator) minCosts(b *simulator.Simulator, pods []*cluster.Pod) (usd float64) {
	for _, p := range pods {
		usd += ev.minCost(b, p) * air
	}
	return usd
}

// estimateNode is what the node may earn within the payback time when pods without room elsewhere get new nodes.
func (ev *Evaluator) estimateNode(b *simulator.Simulator, n *stateNode, left []*cluster.Pod, replace bool) (usd float64, ok bool) {
	if len(left) > 0 && !replace {
		return 0, false
	}
	usd = ev.payback.gainUSD([]*stateNode{n}, ev.minCosts(b, left))
	return usd, usd > 0
}

// beyond all prices, USD per hour.
const beyond = 1e9

// minCost is the least that pods like this one cost on new nodes, USD per hour; beyond all prices where nobody sells what it needs.
func (ev *Evaluator) minCost(b *simulator.Simulator, p *cluster.Pod) float64 {
	p = b.Representative(p)
	usd, known := ev.minCostOf[p]
	if !known {
		usd = ev.worthOf(p)
		ev.minCostOf[p] = usd
	}
	return usd
}

// worthOf is what new nodes cost at least for each pod like that among all that move; beyond all prices where nobody sells what it needs.
func (ev *Evaluator) worthOf(p *cluster.Pod) float64 {
	if ev.worth == nil {
		ev.worth = ev.resolveOfferings().PodPrices(ev.s)
	}
	if usd, ok := ev.worth[p.Key()]; ok {
		return usd
	}
	usd, _ := ev.resolveOfferings().MinPodPrice(*p)
	return usd
}

// departingNodes are the names of nodes that something takes away already.
func (ev *Evaluator) departingNodes() map[string]bool {
	out := map[string]bool{}
	for _, n := range ev.nodes {
		if n.taken && n.Node != nil {
			out[n.Node.Name] = true
		}
	}
	return out
}

// leavingFor are the names of nodes that are taken, but for those of static pools, which bring room for their pods.
func (ev *Evaluator) leavingFor() map[string]bool {
	out := map[string]bool{}
	for _, n := range ev.nodes {
		if n.taken && n.Node != nil && !n.inStaticPool() {
			out[n.Node.Name] = true
		}
	}
	return out
}

// sortByWaste sorts nodes so that those come first that waste most for each pod that would move.
func (ev *Evaluator) sortByWaste(all []*stateNode) {
	b := ev.newPlacedSimulator()
	for _, n := range all {
		n.waste = n.price
		for _, p := range n.moving {
			if usd := ev.minCost(b, p); usd < beyond {
				n.waste -= usd
			}
		}
	}
	slices.SortFunc(all, byWaste)
}

func byWaste(a, b *stateNode) int {
	return cmp.Or(cmp.Compare(b.waste/b.cost, a.waste/a.cost), strings.Compare(a.Claim.Name, b.Claim.Name))
}

// byLoss puts those first that waste most.
func byLoss(a, b *stateNode) int {
	return cmp.Or(cmp.Compare(b.waste, a.waste), strings.Compare(a.Claim.Name, b.Claim.Name))
}
