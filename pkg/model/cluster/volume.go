package cluster

import "slices"

// VolumesMatter reports whether a decision that may empty these nodes, named, must know what volumes allow: a pod that
// uses some waits for a node, or is on a node that goes away or may be emptied. To read volumes costs several lists,
// and most decisions move no pod that has one.
func (s Snapshot) VolumesMatter(emptied map[string]bool) bool {
	uses := func(p Pod) bool { return len(p.UnreadClaims) > 0 }
	if !slices.ContainsFunc(s.Pods, uses) {
		return false
	}
	going := map[string]bool{}
	for _, h := range s.StateNodes() {
		going[h.Name()] = h.MarkedForDeletion()
	}
	return slices.ContainsFunc(s.Pods, func(p Pod) bool {
		return uses(p) && (p.Provisionable() || p.Reschedulable() && (going[p.NodeName] || emptied[p.NodeName]))
	})
}
