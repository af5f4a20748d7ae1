package simulator

import (
	"cmp"
	"slices"

	"joiner.sh/pkg/model/cluster"
)

// NominatedNode is a node that is held for pods.
type NominatedNode struct {
	At   *Node
	Pods []*cluster.Pod
}

// UnschedulableWithNominated returns the pods that find no place, coming in the order given, while nodes are held for
// some. It changes nothing.
func (sim *Simulator) UnschedulableWithNominated(pods []*cluster.Pod, planned map[string]string,
	held []NominatedNode) []*cluster.Pod {
	return sim.unschedulableEitherWay(pods, func() []*cluster.Pod { return sim.bindWithNominated(pods, planned, held) })
}

// UnschedulableWithNew returns pods that find no place, in some order in which they may come, when the nodes come that
// are held. It changes nothing but the order of pods.
func (sim *Simulator) UnschedulableWithNew(pods []*cluster.Pod, planned map[string]string,
	held []NominatedNode) []*cluster.Pod {
	for _, order := range sim.arrivalOrders() {
		slices.SortFunc(pods, order)
		left := sim.unschedulableEitherWay(pods, func() []*cluster.Pod {
			for _, node := range held {
				sim.AddNode(node.At) // spreads count it already
			}
			return sim.bindWithNominated(pods, planned, held)
		})
		if len(left) > 0 {
			return left
		}
	}
	return nil
}

// bindWithNominated binds the pods while some nodes are held, and returns those that find no place. Pods take the room
// that is open; those that find none are admitted to the nodes that are held for them; the rest of the room there is
// for the others, the large ones first.
func (sim *Simulator) bindWithNominated(pods []*cluster.Pod, places map[string]string,
	held []NominatedNode) []*cluster.Pod {
	for _, node := range held {
		node.At.held = true
	}
	left := sim.admitNominated(held, sim.Bind(pods, places))
	for _, node := range held {
		node.At.held = false
	}
	slices.SortFunc(left, func(x, y *cluster.Pod) int {
		return cmp.Or(bySize(y, x), ByKey(x, y))
	})
	return sim.Bind(left, nil)
}

// admitNominated puts pods onto the nodes that are held for their like, and returns the others. Where one must come
// before another may it does.
func (sim *Simulator) admitNominated(held []NominatedNode, pods []*cluster.Pod) []*cluster.Pod {
	want := make([]map[*podClass]int, len(held))
	for i, node := range held {
		want[i] = map[*podClass]int{}
		for _, p := range node.Pods {
			want[i][sim.classOf(p)]++
		}
	}
	for before := -1; before != len(pods); {
		before = len(pods)
		for i, node := range held {
			pods = slices.DeleteFunc(pods, func(p *cluster.Pod) bool {
				class := sim.classOf(p)
				if want[i][class] == 0 || !class.need.FitsIn(node.At.free) || !sim.rulesOf(class).allowsNode(node.At) {
					return false
				}
				want[i][class]--
				sim.applyStep(step{podCame, class, node.At})
				return true
			})
		}
	}
	return pods
}

// BreakingSpread are the pods whose spread would be broken, were all where they are planned. The packer keeps pods on
// the nodes that were made for them, where they could be then; others may have come, or stayed, meanwhile. It moves
// nothing.
func (sim *Simulator) BreakingSpread(pods []*cluster.Pod, planned map[string]string) (out []*cluster.Pod) {
	before := len(sim.steps)
	for _, p := range pods {
		if n := sim.byName[planned[p.Key()]]; n != nil {
			sim.applyStep(step{podCame, sim.classOf(p), n})
		}
	}
	for _, p := range pods {
		if n := sim.byName[planned[p.Key()]]; n != nil && !sim.rulesOf(sim.classOf(p)).withinSpreads(n, 0) {
			out = append(out, p)
		}
	}
	sim.UndoTo(before)
	return out
}
