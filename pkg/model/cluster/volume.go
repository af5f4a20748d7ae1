package cluster

import "slices"

// VolumesMatter reports whether a decision that may empty these nodes, named, must know what volumes allow: a pod that
// uses some waits for a node, or is on a node that goes away or may be emptied. To read volumes costs several lists,
// and most decisions move no pod that has one.
func (s Snapshot) VolumesMatter(emptied map[string]bool) bool {
	going := map[string]bool{}
	for _, node := range s.StateNodes() {
		going[node.Name()] = node.MarkedForDeletion()
	}
	return slices.ContainsFunc(s.Pods, func(p Pod) bool {
		return len(p.UnreadClaims) > 0 &&
			(p.Provisionable() || p.Reschedulable() && (going[p.NodeName] || emptied[p.NodeName]))
	})
}

// HasUnreadVolumes reports whether any pod uses a volume that was not read.
func (s Snapshot) HasUnreadVolumes() bool {
	return slices.ContainsFunc(s.Pods, func(p Pod) bool { return len(p.UnreadClaims) > 0 })
}
