package world

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/resources"
)

// BindPods gives pods that wait a node each, one after the other, as kube-scheduler with its default score for
// resources does: of the nodes that take the pod, the one with the largest part free. It returns those it bound.
//
// It knows the constraints that generated pods have: node selectors, spreads over zones that must hold, anti-affinity
// between hosts.
func (w *World) BindPods() []*Pod {
	var out []*Pod
	nodes := w.SortedNodes()
	for _, p := range w.WaitingPods() {
		if n := w.bestFor(p, nodes); n != nil {
			w.putPod(p, n)
			out = append(out, p)
		}
	}
	return out
}

// bestFor is the emptiest node that takes the pod, or nil.
func (w *World) bestFor(p *Pod, nodes []*Node) *Node {
	allowed := w.zonesFor(p, nodes)
	var best *Node
	most := -1.0
	for _, n := range nodes {
		if n.Closed || n.Kept || !hasRoom(p.Need, n.free) || !w.allowsPod(n, p) ||
			allowed != nil && !allowed[n.OfferingKey.Zone] {
			continue
		}
		if e := meanFree(n.free.Sub(p.Need), w.types[n.OfferingKey.Type].Allocatable); e > most {
			best, most = n, e
		}
	}
	return best
}

func hasRoom(need, free resources.List) bool {
	return need.CPU <= free.CPU && need.Memory <= free.Memory && need.Pods <= free.Pods
}

// meanFree is the mean of the free parts of CPU and memory, as LeastAllocated has it.
func meanFree(free, all resources.List) float64 {
	return (float64(free.CPU)/float64(all.CPU) + float64(free.Memory)/float64(all.Memory)) / 2
}

// allowsPod checks labels, and pods that may not be together.
func (w *World) allowsPod(n *Node, p *Pod) bool {
	for k, v := range p.Object.Spec.NodeSelector {
		if n.labels[k] != v {
			return false
		}
	}
	if a := p.Object.Spec.Affinity; a == nil || a.PodAntiAffinity == nil {
		return true
	}
	return !slices.ContainsFunc(w.on[n.Name], func(x *Pod) bool { return x.App == p.App })
}

// zonesFor are the zones that the pod's spread leaves, nil for all.
func (w *World) zonesFor(p *Pod, nodes []*Node) map[string]bool {
	var rule *corev1.TopologySpreadConstraint
	for i, c := range p.Object.Spec.TopologySpreadConstraints {
		if c.TopologyKey == corev1.LabelTopologyZone && c.WhenUnsatisfiable == corev1.DoNotSchedule {
			rule = &p.Object.Spec.TopologySpreadConstraints[i]
		}
	}
	if rule == nil {
		return nil
	}
	count := map[string]int{}
	for _, n := range nodes {
		if w.takesByLabels(n, p) {
			count[n.OfferingKey.Zone] = w.zones[p.App][n.OfferingKey.Zone]
		}
	}
	least := -1
	for _, c := range count {
		if least < 0 || c < least {
			least = c
		}
	}
	out := map[string]bool{}
	for zone, c := range count {
		out[zone] = c+1-least <= int(rule.MaxSkew)
	}
	return out
}

// takesByLabels reports whether the node counts for spreads of the pod.
func (w *World) takesByLabels(n *Node, p *Pod) bool {
	for k, v := range p.Object.Spec.NodeSelector {
		if n.labels[k] != v {
			return false
		}
	}
	return n.labels[api.LabelNodePool] != ""
}

// PlacePod puts a pod onto a node that is kept for it, if it fits there.
func (w *World) PlacePod(p *Pod, n *Node) bool {
	if zones := w.zonesFor(p, w.SortedNodes()); !hasRoom(p.Need, n.free) || !w.allowsPod(n, p) || zones != nil &&
		!zones[n.OfferingKey.Zone] {
		return false
	}
	w.putPod(p, n)
	return true
}
