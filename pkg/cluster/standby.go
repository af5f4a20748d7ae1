package cluster

import (
	"encoding/json"
	"slices"

	api "joiner/pkg/api/v1"
)

const (
	// AnnotationReplaces on a NodeClaim names the disruption that it is a replacement of.
	AnnotationReplaces = "joiner.sh/replaces"
	// AnnotationHeldFor on a replacement says for how many pods of each controller its node is held while the nodes that it replaces
	// are drained: "uid=count", comma separated.
	AnnotationHeldFor = "joiner.sh/held-for"
)

// Disruption is the id of the disruption by which the claim goes, empty for none.
func (c Claim) Disruption() string {
	var mark struct{ ID string }
	if json.Unmarshal([]byte(c.Annotations[AnnotationDisruption]), &mark) != nil {
		return ""
	}
	return mark.ID
}

// Held reports whether the host is kept for pods that are to be evicted elsewhere: it has the hold it was born with, or has no node yet.
func (h Host) Held() bool {
	return h.Claim != nil && h.Claim.Annotations[AnnotationHeldFor] != "" && !h.Condemned() && (h.Node == nil || slices.ContainsFunc(h.Node.Taints, Taint.Hold))
}

// Standby reports whether the held node lacks nothing but pods: only its hold keeps it from being initialized (spec core.md §4.4).
func (h Host) Standby() bool {
	if !h.Held() || !h.Registered() || !h.Node.Ready {
		return false
	}
	for _, name := range h.Claim.Requests.Names() {
		if h.Node.Allocatable.Get(name) == 0 {
			return false
		}
	}
	return !slices.ContainsFunc(h.Node.Taints, func(t Taint) bool {
		started := !slices.ContainsFunc(h.Claim.StartupTaints, func(s Taint) bool { return s.Key == t.Key && s.Effect == t.Effect })
		return t.Ephemeral() || t.Hold() && t.Value == api.HoldAtBoot || !t.Hold() && !started
	})
}
