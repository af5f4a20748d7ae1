package disruption

import (
	"fmt"
	"slices"

	"joiner.sh/pkg/disruption/simulator"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// The packer fills the last gaps of nodes, and the scheduler does not: it gives each pod the emptiest node. New nodes
// that are held do not depend on what it does with the room that is open. So they are made for the pods that it leaves
// without a place.

// planOverflow returns the plan for the pods of the set in which the scheduler fills the room that is open, and what it
// leaves gets new nodes. It is false where some find no place in the end. places is where pods go, by key, whose
// constraints a simulator does not model.
func (ev *Evaluator) planOverflow(set []*stateNode, places map[string]string) (plan.Plan, bool) {
	var p plan.Plan
	for fills := 0; ; fills++ {
		left := ev.unschedulablePods(set, places, p.Launches)
		if len(left) == 0 {
			return p, ev.packerAgrees(set, p.Launches)
		}
		if fills == maxRounds {
			return plan.Plan{}, false
		}
		more := ev.launchesFor(left, set, p.Launches)
		if len(more) == 0 {
			return plan.Plan{}, false
		}
		p.Launches = append(slices.Clone(p.Launches), more...)
	}
}

// packerAgrees reports whether the packer finds room for all pods too, where some spread over domains that have no
// node: it counts domains in which nodes may come, and a simulator does not.
func (ev *Evaluator) packerAgrees(set []*stateNode, launches []plan.Launch) bool {
	if len(launches) == 0 {
		return false // nothing is held, and deleteOnly has answered that
	}
	if !ev.spreadsBeyondNodes(set, launches) {
		return true
	}
	p := ev.planWithout(ev.consolidationBaseline, set, launches...)
	return len(p.Launches)+len(p.Unplaced) == 0
}

// spreadsBeyondNodes reports whether pods of the set spread over domains in which a node may come and none is.
func (ev *Evaluator) spreadsBeyondNodes(set []*stateNode, launches []plan.Launch) bool {
	b := ev.consolidationSimulator()
	defer b.UndoTo(b.Mark())
	pods := ev.removeNodes(b, set)
	for i, l := range launches {
		b.AddNode(ev.state.simulatedNode(l, fmt.Sprintf("launch %d", i)))
	}
	return slices.ContainsFunc(pods, func(p *cluster.Pod) bool {
		return b.SpreadsBeyondNodes(p, func(key string) int {
			return len(ev.state.resolveOfferings().OfferedDomains(key))
		})
	})
}

// survivesScheduling reports whether all pods find a place when the new nodes of the plan are held.
func (ev *Evaluator) survivesScheduling(set []*stateNode, p plan.Plan) bool {
	return len(p.Launches) > 0 && len(ev.unschedulablePods(set, p.NodeByPod(), p.Launches)) == 0
}

// unschedulablePods returns pods that find no place when the launches are held, in some order in which they may come.
func (ev *Evaluator) unschedulablePods(set []*stateNode, places map[string]string,
	launches []plan.Launch) []*cluster.Pod {
	b := ev.consolidationSimulator()
	defer b.UndoTo(b.Mark())
	pods := ev.removeNodes(b, set)
	var held []simulator.NominatedNode
	for i, l := range launches {
		held = append(held, simulator.NominatedNode{At: ev.state.simulatedNode(l, fmt.Sprintf("launch %d", i)),
			Pods: ev.state.podsByKeys(l.Pods)})
	}
	return b.UnschedulableWithNew(pods, places, held)
}
