package simulator

import (
	"cmp"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// NewNode returns a node that has so much room for pods; free may be less than allocatable. It has what pods require.
func NewNode(name string, labels map[string]string, taints []cluster.Taint, allocatable, free resources.List) *Node {
	return &Node{name: name, labels: labels, taints: cluster.HardTaints(taints), all: allocatable, free: free,
		provides: func(string) bool { return true }}
}

// SetProvided says what the node has of what pods require.
func (n *Node) SetProvided(provides func(part string) bool) { n.provides = provides }

// Labels are the labels of the node.
func (n *Node) Labels() map[string]string { return n.labels }

// Bound returns the number of moved pods that were bound to the node.
func (n *Node) Bound() int { return n.taken }

// SetHeld has the node take no pods, or take them again.
func (n *Node) SetHeld(held bool) { n.held = held }

// SelectedBy reports whether the node is one of those that the pod asks for by its labels.
func (n *Node) SelectedBy(p *cluster.Pod) bool { return nodeSelected(n, p) }

// nodeAdmits reports whether labels, taints, the pod's volumes and what else it requires let it onto the node.
func nodeAdmits(n *Node, p *cluster.Pod) bool {
	return nodeSelected(n, p) && meetsAny(n, p.VolumeZones) &&
		len(cluster.Untolerated(n.taints, p.Tolerations)) == 0 &&
		!slices.ContainsFunc(p.Requires, func(part string) bool { return !n.provides(part) })
}

// nodeSelected reports whether the node is one of those that the pod asks for. Where its volumes are does not count: a
// spread looks at what pods ask for.
func nodeSelected(n *Node, p *cluster.Pod) bool {
	for k, value := range p.NodeSelector {
		if has, ok := n.labels[k]; !ok || has != value {
			return false
		}
	}
	return meetsAny(n, p.NodeAffinity)
}

// meetsAny reports whether the node meets one of the alternatives, if there are any.
func meetsAny(n *Node, alternatives [][]requirements.Requirement) bool {
	return len(alternatives) == 0 || slices.ContainsFunc(alternatives, func(term []requirements.Requirement) bool {
		return !slices.ContainsFunc(term, func(r requirements.Requirement) bool { return !r.Matches(n.labels) })
	})
}

// freeShare is the mean part of CPU and memory that stays free, as kube-scheduler scores nodes by default.
func (n *Node) freeShare(need resources.List) float64 {
	cpu, memory := float64(max(n.all.CPU, 1)), float64(max(n.all.Memory, 1))
	return float64(n.free.CPU)/cpu + float64(n.free.Memory)/memory - float64(need.CPU)/cpu - float64(need.Memory)/memory
}

// ByKey sorts pods by namespace and name.
func ByKey(a, b *cluster.Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
