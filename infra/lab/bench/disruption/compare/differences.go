package main

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// The names of differences that no easing shows. The page infra/lab/bench/differences.md has a row for each, by its
// name.
const (
	priceUnknown = "price that nobody knows"
	firstFit     = "room on existing nodes"
	unevenSpread = "spread that counts pods without it"
	limitCounts  = "limit of a NodePool while nodes are replaced"
	playedBefore = "pods that the scheduler may leave without a node"
	notReady     = "static NodePool that cannot launch"
	sameType     = "one for several, of a type that is there"
)

// difference is a way in which both sides differ on purpose.
type difference struct {
	name    string
	applies func(finding) bool
}

// explainFinding returns the name of the difference that accounts for the finding, empty for none.
func explainFinding(f finding) string {
	if f.eased != "" {
		return f.eased
	}
	for _, d := range knownDifferences() {
		if d.applies(f) {
			return d.name
		}
	}
	return ""
}

func knownDifferences() []difference {
	return []difference{
		{priceUnknown, func(f finding) bool {
			return f.Kind == "candidate" && !f.ours && f.Reason == api.DisruptionUnderutilized && f.isUnpriced()
		}},
		{sameType, func(f finding) bool {
			return f.Kind == "same-type" && len(f.command.Claims) > 1 && len(f.command.Launches) == 1
		}},
		{notReady, func(f finding) bool {
			h, ok := hostOf(f.snapshot, f.About)
			if !ok || f.Kind != "left" {
				return false
			}
			p, found := f.snapshot.PoolOf(h.Pool())
			return found && p.Static && (!p.Ready || p.Deleting || strings.Contains(f.Ours, "its requirements want "))
		}},
		{limitCounts, func(f finding) bool {
			return f.Kind == "left" && (strings.Contains(f.Ours, " would be exceeded: ") ||
				f.Reason != api.DisruptionDrifted && f.overLimit())
		}},
		{playedBefore, func(f finding) bool {
			return f.Kind == "left" && strings.Contains(f.Ours, "the scheduler may leave pods of it without a node")
		}},
		{unevenSpread, func(f finding) bool {
			broken := strings.Contains(f.Ours, "its spread or affinity would be broken, because too few pods found room in other domains")
			full := strings.Contains(f.Ours, "spread with maxSkew") && strings.Contains(f.Ours, "allows no more pods")
			return f.Kind == "left" && (broken || f.countsCompanions() &&
				(full || strings.Contains(f.Ours, "nothing cheaper was found")))
		}},
		{firstFit, func(f finding) bool { return (f.Kind == "room" || f.Kind == "drift") && f.hasRoom() }},
	}
}

// hostOf is the node of that claim.
func hostOf(s cluster.Snapshot, claim string) (cluster.StateNode, bool) {
	for _, h := range s.StateNodes() {
		if h.Claim != nil && h.Claim.Name == claim {
			return h, true
		}
	}
	return cluster.StateNode{}, false
}

// isUnpriced reports whether nobody knows what the node costs: what its labels say it is, is not sold at all.
func (f finding) isUnpriced() bool {
	h, ok := hostOf(f.snapshot, f.About)
	if !ok {
		return false
	}
	l := h.Labels()
	o := instancetypes.OfferingKey{CapacityType: l[api.LabelCapacityType], Type: l[corev1.LabelInstanceTypeStable],
		Zone: l[corev1.LabelTopologyZone]}
	return !slices.ContainsFunc(f.sells, func(t instancetypes.Type) bool {
		return slices.ContainsFunc(t.Offerings, func(x instancetypes.Offering) bool { return x.OfferingKey == o })
	})
}

// overLimit reports whether the nodes of the NodePool of the node have more of something than its limits allow.
func (f finding) overLimit() bool {
	h, ok := hostOf(f.snapshot, f.About)
	if !ok {
		return false
	}
	p, _ := f.snapshot.PoolOf(h.Pool())
	return slices.ContainsFunc(p.Limited, func(name string) bool {
		used := int64(0)
		for _, o := range f.snapshot.StateNodes() {
			if o.Pool() == p.Name && !o.Deleting() {
				used += o.Capacity().Get(name)
			}
		}
		return used > p.Limits.Get(name)
	})
}

// countsCompanions reports whether a required spread of a pod on the node counts others there that have no such spread,
// and so many that they cannot all come to one domain with it.
func (f finding) countsCompanions() bool {
	h, ok := hostOf(f.snapshot, f.About)
	if !ok || h.Node == nil {
		return false
	}
	pods := slices.DeleteFunc(slices.Clone(f.snapshot.Pods),
		func(p cluster.Pod) bool { return p.NodeName != h.Node.Name })
	return slices.ContainsFunc(pods, func(p cluster.Pod) bool {
		return slices.ContainsFunc(p.Spread, func(c cluster.Spread) bool {
			counted, alone := int32(0), false
			for _, o := range pods {
				if o.Namespace == p.Namespace && c.Selector.Matches(o.Labels) {
					counted++
					alone = alone || !slices.ContainsFunc(o.Spread,
						func(x cluster.Spread) bool { return !x.Soft && x.Key == c.Key })
				}
			}
			return !c.Soft && alone && counted > c.MaxSkew
		})
	})
}
