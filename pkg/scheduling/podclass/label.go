package podclass

import (
	"slices"
	"strings"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// LabelHost is the topology key of single nodes.
const LabelHost = "kubernetes.io/hostname"

// IsWellKnownLabel reports whether the instance, and not the pool's author, decides the label's value.
func IsWellKnownLabel(key string) bool {
	switch key {
	case LabelHost, instancetypes.LabelZone, instancetypes.LabelRegion, instancetypes.LabelArch, instancetypes.LabelOS,
		instancetypes.LabelType, instancetypes.LabelZoneID, api.LabelNodePool, instancetypes.LabelCapacityType,
		api.LabelWindowsBuild:
		return true
	}
	return strings.HasPrefix(key, "karpenter.k8s.aws/")
}

// VariesByOffering reports whether offerings of one instance type differ in the label.
func VariesByOffering(key string) bool {
	_, own := instancetypes.Offering{}.Label(key)
	return own
}

// OnEveryNode reports whether every node has the label.
func OnEveryNode(key string) bool {
	switch key {
	case instancetypes.LabelZone, instancetypes.LabelCapacityType, instancetypes.LabelArch, instancetypes.LabelOS,
		instancetypes.LabelType, instancetypes.LabelRegion:
		return true
	}
	return false
}

// NamedValues lists the label values for labels that nobody but a pool decides which pods name that wait, or run and
// may have to move: a pool has the same to offer whichever of them wait.
func (cs *Classes) NamedValues(pods []cluster.Pod) map[string][]string {
	out := map[string][]string{}
	for _, class := range cs.List {
		addNamedValues(out, &class.Pod)
	}
	for i := range pods {
		if p := &pods[i]; p.NodeName != "" && p.Reschedulable() {
			addNamedValues(out, p)
		}
	}
	for key, list := range out { // each on its own
		slices.Sort(list)
		out[key] = slices.Compact(list)
	}
	return out
}

// addNamedValues adds the label values that the pod names, by label.
func addNamedValues(to map[string][]string, p *cluster.Pod) {
	for key, v := range p.NodeSelector { // sorted later
		if !IsWellKnownLabel(key) {
			to[key] = append(to[key], v)
		}
	}
	for _, term := range p.NodeAffinity {
		for _, r := range term {
			switch {
			case IsWellKnownLabel(r.Key):
			case r.Not:
				to[r.Key] = append(to[r.Key], r.AnyValue()) // a node that keeps to it may get this
			default:
				to[r.Key] = append(to[r.Key], r.Values...)
			}
		}
	}
}
