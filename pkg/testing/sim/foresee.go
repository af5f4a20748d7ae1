package sim

import (
	"maps"
	"slices"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
)

// willRefuse says why the node will not take the pod, as far as anybody can know: that its kubelet is silent shows only
// once its Ready condition says so, pods that end stand in the way of others for less than a minute, and provision lets
// pods onto nodes held for those that are evicted.
func (w *world) willRefuse(p *pod, n *node) string {
	seen := *n
	seen.down = false
	if c := w.byUID[n.owner]; c != nil && c.Annotations[v1.AnnotationNominatedOwners] != "" {
		seen.Taints = slices.DeleteFunc(slices.Clone(n.Taints), cluster.Taint.IsNomination)
	}
	why := w.refusalReason(p, &seen)
	if why != "pod affinity" {
		return why
	}
	ending := map[string]*pod{}
	for key, other := range w.pods {
		if other.Terminating() {
			ending[key] = other
		}
	}
	for key := range ending {
		delete(w.pods, key)
	}
	why = w.refusalReason(p, &seen)
	for key, other := range ending {
		w.pods[key] = other
	}
	return why
}

// inService reports whether the claim's node is: the node says so a moment before the claim does.
func (w *world) inService(c *claim) bool {
	n := w.nodeOf(c)
	return c.Is(v1.ConditionInitialized) || n != nil && n.Ready && n.Labels[v1.LabelInitialized] == "true"
}

// moveKin puts the pods of other apps that have the labels of this one, and run on the node too, where they have a
// place once the node is gone: they count for its spread. It returns what takes that back.
func (w *world) moveKin(p *pod, n *node) (back func()) {
	var moved []*pod
	for _, kin := range w.podsOn(n.Name) {
		if kin.app == p.app || kin.Labels["app"] != p.Labels["app"] || !kin.Active() {
			continue
		}
		kin.NodeName = ""
		for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
			if w.willRefuse(kin, w.nodes[name]) == "" {
				kin.NodeName = name
				break
			}
		}
		moved = append(moved, kin)
	}
	return func() {
		for _, kin := range moved {
			kin.NodeName = n.Name
		}
	}
}
