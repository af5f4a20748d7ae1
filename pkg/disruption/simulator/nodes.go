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
func (x *Node) SetProvided(provides func(part string) bool) { x.provides = provides }

// Labels are the labels of the node.
func (x *Node) Labels() map[string]string { return x.labels }

// Bound returns the number of moved pods that were bound to the node.
func (x *Node) Bound() int { return x.taken }

// SetHeld has the node take no pods, or take them again.
func (x *Node) SetHeld(held bool) { x.held = held }

// SelectedBy reports whether the node is one of those that the pod asks for by its labels.
func (x *Node) SelectedBy(p *cluster.Pod) bool { return nodeSelected(x, p) }

// nodeAdmits reports whether labels, taints, the pod's volumes and what else it requires let it onto the node.
func nodeAdmits(x *Node, p *cluster.Pod) bool {
	return nodeSelected(x, p) && meetsAny(x, p.VolumeZones) &&
		len(cluster.Untolerated(x.taints, p.Tolerations)) == 0 &&
		!slices.ContainsFunc(p.Requires, func(part string) bool { return !x.provides(part) })
}

// nodeSelected reports whether the node is one of those that the pod asks for. Where its volumes are does not count: a
// spread looks at what pods ask for.
func nodeSelected(x *Node, p *cluster.Pod) bool {
	for k, value := range p.NodeSelector {
		if has, ok := x.labels[k]; !ok || has != value {
			return false
		}
	}
	return meetsAny(x, p.NodeAffinity)
}

// meetsAny reports whether the node meets one of the alternatives, if there are any.
func meetsAny(x *Node, alternatives [][]requirements.Requirement) bool {
	return len(alternatives) == 0 || slices.ContainsFunc(alternatives, func(term []requirements.Requirement) bool {
		return !slices.ContainsFunc(term, func(r requirements.Requirement) bool { return !r.Matches(x.labels) })
	})
}

// freeShare is the mean part of CPU and memory that stays free, as kube-scheduler scores nodes by default.
func (x *Node) freeShare(need resources.List) float64 {
	return float64(x.free.CPU-need.CPU)/float64(max(x.all.CPU, 1)) +
		float64(x.free.Memory-need.Memory)/float64(max(x.all.Memory, 1))
}

// ByKey sorts pods by namespace and name.
func ByKey(a, b *cluster.Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
