package main

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
)

// The names of differences that no easing shows. The README of the bench has a row for each difference, by its name.
const (
	priceUnknown = "price that nobody knows"
	firstFit     = "room on existing nodes"
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

// explain is the name of the difference that accounts for the finding, empty for none.
func explain(f finding) string {
	if f.eased != "" {
		return f.eased
	}
	for _, d := range differences() {
		if d.applies(f) {
			return d.name
		}
	}
	return ""
}

// names are all that explain gives.
func names() []string {
	out := []string{severalOfThese}
	for _, e := range easings() {
		if !slices.Contains(out, e.name) { // several changes may show one
			out = append(out, e.name)
		}
	}
	for _, d := range differences() {
		out = append(out, d.name)
	}
	return out
}

func differences() []difference {
	return []difference{
		{priceUnknown, func(f finding) bool {
			return f.Kind == "candidate" && !f.ours && f.Reason == api.DisruptionUnderutilized && f.unpriced()
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
			return f.Kind == "left" && strings.Contains(f.Ours, " would be exceeded: ")
		}},
		{playedBefore, func(f finding) bool {
			return f.Kind == "left" && strings.Contains(f.Ours, "the scheduler may leave pods of it without a node")
		}},
		{firstFit, func(f finding) bool { return (f.Kind == "room" || f.Kind == "drift") && f.fits() }},
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

// unpriced reports whether nobody knows what the node costs: what its labels say it is, is not sold at all.
func (f finding) unpriced() bool {
	h, ok := hostOf(f.snapshot, f.About)
	if !ok {
		return false
	}
	l := h.Labels()
	o := instancetypes.Offer{CapacityType: l[api.LabelCapacityType], Type: l[corev1.LabelInstanceTypeStable],
		Zone: l[corev1.LabelTopologyZone]}
	return !slices.ContainsFunc(f.sells, func(t instancetypes.Type) bool {
		return slices.ContainsFunc(t.Offerings, func(x instancetypes.Offering) bool { return x.Offer == o })
	})
}
