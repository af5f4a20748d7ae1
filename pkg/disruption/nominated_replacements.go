package disruption

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/plan"
)

// The packer fills the last gaps of nodes, and the scheduler does not: it gives each pod the emptiest node. New nodes that are held do not
// depend on what it does with the room that is open. So they are made for the pods that it leaves without a place.

// mostFills is how often pods that are left are given more new nodes.
const mostFills = 4

// planOverflow is the plan for the pods of the set in which the scheduler fills the room that is open, and what it leaves gets new nodes. It is
// false where some find no place in the end. places says where those pods may go about which more decides than what a board knows.
func (v *state) planOverflow(set []*stateNode, places map[string]string) (plan.Plan, bool) {
	var p plan.Plan
	for fills := 0; ; fills++ {
		left := v.unschedulable(set, places, p.Launches)
		if len(left) == 0 {
			return p, v.packerAgrees(set, p.Launches)
		}
		if fills == mostFills {
			return plan.Plan{}, false
		}
		more := v.launchesFor(left, set, p.Launches)
		if len(more) == 0 {
			return plan.Plan{}, false
		}
		p.Launches = append(slices.Clone(p.Launches), more...)
	}
}

// packerAgrees reports whether the packer finds room for all pods too, where some spread over domains of which one has no node: it reckons with
// the nodes that may come there, and a board does not.
func (v *state) packerAgrees(set []*stateNode, launches []plan.Launch) bool {
	if len(launches) == 0 {
		return false // nothing is held, and shed knows better
	}
	if !v.mayWiden(set, launches) {
		return true
	}
	p := v.planWithout(v.saving, set, launches...)
	return len(p.Launches)+len(p.Unplaced) == 0
}

// mayWiden reports whether pods of the set spread over domains in which a node may come and none is.
func (v *state) mayWiden(set []*stateNode, launches []plan.Launch) bool {
	b := v.newPlacedSimulator()
	defer b.undoTo(len(b.steps))
	pods := v.removeNodes(b, set)
	for i, l := range launches {
		b.addNode(v.siteOf(l, fmt.Sprintf("launch %d", i)))
	}
	return slices.ContainsFunc(pods, func(p *cluster.Pod) bool {
		k := b.classOf(p)
		b.prepareCounters(k)
		return slices.ContainsFunc(k.spreads, func(s spreadRule) bool {
			return s.counter.key != corev1.LabelHostname && s.counter.domainsWithNodes() < len(v.resolveOfferings().OfferedDomains(s.counter.key))
		})
	})
}

// survivesScheduling reports whether all pods find a place when the new nodes of the plan are held.
func (v *state) survivesScheduling(set []*stateNode, p plan.Plan) bool {
	return len(p.Launches) > 0 && len(v.unschedulable(set, p.NodeByPod(), p.Launches)) == 0
}

// unschedulable are pods that find no place when the launches are held, in some order in which they may come.
func (v *state) unschedulable(set []*stateNode, places map[string]string, launches []plan.Launch) []*cluster.Pod {
	b := v.newPlacedSimulator()
	defer b.undoTo(len(b.steps))
	pods := v.removeNodes(b, set)
	var held []nominatedNode
	for i, l := range launches {
		held = append(held, nominatedNode{v.siteOf(l, fmt.Sprintf("launch %d", i)), v.podsBy(l.Pods)})
	}
	for _, order := range b.arrivalOrders() {
		slices.SortFunc(pods, order)
		left := b.unschedulableEitherWay(pods, func() []*cluster.Pod {
			for _, h := range held {
				b.addNode(h.at) // spreads count it already
			}
			return b.bindWithNominated(pods, places, held)
		})
		if len(left) > 0 {
			return left
		}
	}
	return nil
}

// nominatedNode is a node that is held for pods.
type nominatedNode struct {
	at   *simNode
	pods []*cluster.Pod
}

// bindWithNominated puts the pods onto the sites as they come while some are held, and returns those that find no place: they take the room that is open,
// those that find none are let onto the nodes that are held for them, and the rest of the room there is for those that were meant to go
// elsewhere, the large ones first.
func (b *simulator) bindWithNominated(pods []*cluster.Pod, places map[string]string, held []nominatedNode) []*cluster.Pod {
	for _, h := range held {
		h.at.held = true
	}
	left := b.admitNominated(held, b.bindPods(pods, places))
	for _, h := range held {
		h.at.held = false
	}
	slices.SortFunc(left, func(x, y *cluster.Pod) int {
		return cmp.Or(bySize(y, x), byKey(x, y))
	})
	return b.bindPods(left, nil)
}

// admitNominated puts pods onto the nodes that are held for their like, and returns the others. Where one must come before another may it does.
func (b *simulator) admitNominated(held []nominatedNode, pods []*cluster.Pod) []*cluster.Pod {
	want := make([]map[*podClass]int, len(held))
	for i, h := range held {
		want[i] = map[*podClass]int{}
		for _, p := range h.pods {
			want[i][b.classOf(p)]++
		}
	}
	for before := -1; before != len(pods); {
		before = len(pods)
		for i, h := range held {
			pods = slices.DeleteFunc(pods, func(p *cluster.Pod) bool {
				k := b.classOf(p)
				if want[i][k] == 0 || !p.Need.FitsIn(h.at.free) || !b.rulesOf(k).allowsNode(h.at) {
					return false
				}
				want[i][k]--
				b.applyStep(simStep{podCame, k, h.at})
				return true
			})
		}
	}
	return pods
}
