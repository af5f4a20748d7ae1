package manifests

import corev1 "k8s.io/api/core/v1"

// Outcome is what an autoscaler decided about the pods that wait. Pods are named namespace/name.
type Outcome struct {
	New      []NewNode
	Existing map[string]string // pod to the node, or the claim while it has none, that has room for it
	Left     map[string]string // pod to the reason why it gets no node
}

// NewNode is a node to be made, as it will be.
type NewNode struct {
	Name         string // of our own
	NodePool     string
	InstanceType string
	Zone         string
	CapacityType string
	Labels       map[string]string
	Taints       []corev1.Taint // without those that go away while it starts
	Allocatable  corev1.ResourceList
	Pods         []string
}

// PlacedPods are the pods that have a place, each with its node's name.
func (o Outcome) PlacedPods() map[string]string {
	out := make(map[string]string, len(o.Existing))
	for pod, node := range o.Existing {
		out[pod] = node
	}
	for _, n := range o.New {
		for _, pod := range n.Pods {
			out[pod] = n.Name
		}
	}
	return out
}
