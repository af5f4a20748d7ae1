package simulator

import (
	"cmp"
	"slices"

	"joiner.sh/pkg/model/cluster"
)

// Bind puts the pods onto nodes one after the other, each onto the emptiest that takes it, and returns those that find
// none. Pods with constraints that a simulator does not model go first, to where the packer put them: planned is the
// node by the pod's key. Those that must be beside others are tried once more after these, as the scheduler tries them
// again: among them are those that share a ResourceClaim.
func (sim *Simulator) Bind(pods []*cluster.Pod, planned map[string]string) []*cluster.Pod {
	return sim.bindSome(pods, planned, true)
}

// BindUntilUnschedulable is Bind that stops at the first pod without a place.
func (sim *Simulator) BindUntilUnschedulable(pods []*cluster.Pod, planned map[string]string) (left []*cluster.Pod) {
	return sim.bindSome(pods, planned, false)
}

func (sim *Simulator) bindSome(pods []*cluster.Pod, planned map[string]string, all bool) (left []*cluster.Pod) {
	for _, p := range pods {
		if sim.blind || !hasUnmodelledConstraints(p) {
			continue
		}
		if n := sim.byName[planned[p.Key()]]; n != nil && !n.gone && p.NextNeed().FitsIn(n.free) {
			sim.applyStep(step{podCame, sim.classOf(p), n})
		} else {
			left = append(left, p)
		}
		if len(left) > 0 && !all {
			return left
		}
	}
	var following []*cluster.Pod
	for _, p := range pods {
		if !sim.blind && hasUnmodelledConstraints(p) {
			continue
		}
		switch {
		case bindToEmptiest(sim, p):
			if sim.retries {
				following = retryPods(sim, following)
			}
		case len(p.Affinity) > 0:
			following = append(following, p)
		default:
			left = append(left, p)
		}
		if len(left) > 0 && !all {
			return left
		}
	}
	return append(left, retryPods(sim, following)...)
}

// retryPods binds those of the pods that find a node by now, and returns the others. The list given is used up.
func retryPods(sim *Simulator, pods []*cluster.Pod) []*cluster.Pod {
	if len(pods) == 0 {
		return nil
	}
	failed := map[*podClass]bool{}
	return slices.DeleteFunc(pods, func(p *cluster.Pod) bool {
		class := sim.classOf(p)
		failed[class] = failed[class] || !bindToEmptiest(sim, p)
		return !failed[class]
	})
}

// bindToEmptiest puts the pod onto the emptiest node that takes it, if one does. Of a pod with constraints that nobody
// models it is not known.
func bindToEmptiest(sim *Simulator, p *cluster.Pod) bool {
	if len(p.Unmodelled)+len(p.DeviceTemplates)+len(p.DeviceClaims) > 0 {
		return false
	}
	class := sim.classOf(p)
	n := sim.emptiestNode(class)
	if n != nil {
		sim.applyStep(step{podCame, class, n})
	}
	return n != nil
}

// unschedulableEitherWay returns the pods that do, which binds them, leaves without a place. It runs do with unmodelled
// constraints respected, as Bind describes, and if that leaves none once more with these ignored, since the scheduler
// may choose other nodes. What do does is undone.
func (sim *Simulator) unschedulableEitherWay(pods []*cluster.Pod, do func() []*cluster.Pod) []*cluster.Pod {
	before := len(sim.steps)
	left := do()
	sim.UndoTo(before)
	if len(left) > 0 || !slices.ContainsFunc(pods, hasUnmodelledConstraints) {
		return left
	}
	sim.blind = true
	left = do()
	sim.UndoTo(before)
	sim.blind = false
	return left
}

// hasUnmodelledConstraints reports whether more decides where the pod may be than a simulator knows.
func hasUnmodelledConstraints(p *cluster.Pod) bool {
	return len(p.HostPorts)+len(p.VolumeZones)+len(p.Volumes)+len(p.UnreadClaims) > 0
}

// Unschedulable returns pods that the scheduler may leave without a place, and changes nothing. The order in which pods
// come to it is not known, so several are tried. Where tight, because no new node has room to spare, these are more:
// the small ones first and the large ones first.
func (sim *Simulator) Unschedulable(pods []*cluster.Pod, planned map[string]string, tight bool) []*cluster.Pod {
	size := func(x, y *cluster.Pod) int { return cmp.Or(bySize(x, y), ByKey(x, y)) }
	orders := sim.arrivalOrders()
	if tight {
		orders = append(orders, size, func(x, y *cluster.Pod) int { return size(y, x) })
	}
	ways := []bool{false} // whether pods are tried again at once
	if slices.ContainsFunc(pods, func(p *cluster.Pod) bool { return len(p.Affinity) > 0 }) {
		ways = append(ways, true)
	}
	defer func() { sim.retries = false }()
	for _, order := range orders {
		sorted := slices.SortedFunc(slices.Values(pods), order)
		for _, sim.retries = range ways {
			if left := sim.unschedulableEitherWay(sorted,
				func() []*cluster.Pod { return sim.Bind(sorted, planned) }); len(left) > 0 {
				return left
			}
		}
	}
	return nil
}

// bySize puts the small ones first.
func bySize(x, y *cluster.Pod) int {
	return cmp.Or(cmp.Compare(x.Need.CPU, y.Need.CPU), cmp.Compare(x.Need.Memory, y.Need.Memory))
}

// arrivalOrders are orders in which pods may come: by name, the other way round, and with those last that have the
// least choice of nodes: that few nodes admit, or that depend on other pods. Others may take their place then, and no
// new node may do for them.
func (sim *Simulator) arrivalOrders() []func(x, y *cluster.Pod) int {
	bound := func(p *cluster.Pod) int { return len(p.Affinity) + len(p.AntiAffinity) + len(p.Spread) }
	byChoice := func(x, y *cluster.Pod) int {
		return cmp.Or(cmp.Compare(bound(x), bound(y)),
			cmp.Compare(sim.admissionOf(sim.classOf(y)).count, sim.admissionOf(sim.classOf(x)).count), ByKey(x, y))
	}
	return []func(x, y *cluster.Pod) int{ByKey, func(x, y *cluster.Pod) int { return ByKey(y, x) }, byChoice}
}
