package translate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

// namedClaim is what matters of a ResourceClaim that pods name.
type namedClaim struct {
	ask       deviceAsk
	deleting  bool
	allocated bool
	places    [][]requirements.Requirement // alternatives that the allocated devices leave; none for any node
	unread    string                       // why these are not known
	onlyPod   string                       // UID of the pod that has it alone; empty where it is not one
}

func newNamedClaim(in *resourcev1.ResourceClaim, ask deviceAsk) namedClaim {
	out := namedClaim{ask: ask, deleting: in.DeletionTimestamp != nil, allocated: in.Status.Allocation != nil}
	if users := in.Status.ReservedFor; len(users) == 1 && users[0].APIGroup == "" && users[0].Resource == "pods" {
		out.onlyPod = string(users[0].UID)
	}
	if !out.allocated || in.Status.Allocation.NodeSelector == nil {
		return out
	}
	for _, t := range in.Status.Allocation.NodeSelector.NodeSelectorTerms {
		one, err := claimPlace(t)
		if err != nil {
			out.unread = "where its devices are is not known: " + err.Error()
		}
		out.places = append(out.places, one)
	}
	return out
}

// claimPlace reads where allocated devices can be used: kube-scheduler names a node by its name, as a field.
func claimPlace(t corev1.NodeSelectorTerm) ([]requirements.Requirement, error) {
	var nodes []requirements.Requirement
	for _, f := range t.MatchFields {
		if f.Key == "metadata.name" && f.Operator == corev1.NodeSelectorOpIn {
			nodes = append(nodes, requirements.Of(corev1.LabelHostname, f.Values...))
		}
	}
	if len(nodes) == len(t.MatchFields) {
		t.MatchFields = nil
	}
	others, err := termFrom(t)
	return append(nodes, others...), err
}

// NoteFirst says which of the pods gets the devices of a ResourceClaim that several name and nobody has: the oldest.
// The others go where it goes.
func (d DeviceClaims) NoteFirst(pods []*cluster.Pod) {
	shared := map[string]bool{}
	for _, p := range pods {
		for _, name := range p.DeviceClaims {
			key := p.Namespace + "/" + name
			have := d.first[key]
			if !p.Provisionable() {
				continue
			}
			shared[key] = have != nil
			if have == nil || cmp.Or(p.Created.Compare(have.Created), cmp.Compare(p.Name, have.Name)) < 0 {
				d.first[key] = p
			}
		}
	}
	for key, p := range d.first {
		if _, name, _ := strings.Cut(key, "/"); shared[key] {
			p.Labels = maps.Clone(p.Labels)
			if p.Labels == nil {
				p.Labels = map[string]string{}
			}
			p.Labels[cluster.SharedClaim+name] = "first"
		}
	}
}

// askOfNamed is what the pod lacks of the devices of a ResourceClaim that it names, and where that counts: now, anew if
// only another pod in its stead lacks them, or nowhere. A pod that waits for devices that are allocated may be where
// these are, and one that shares them with a pod that gets them first goes where that goes.
func (d DeviceClaims) askOfNamed(p *cluster.Pod, name string, now, anew map[string]int64) (ask deviceAsk,
	into map[string]int64) {
	key := p.Namespace + "/" + name
	c, ok := d.claimed.named[key]
	first := d.first[key]
	switch {
	case !ok:
		ask.refused = "it does not exist"
	case c.deleting:
		ask.refused = "it is being deleted"
	case !c.allocated && p.NodeName == "" && first != nil && first.Name != p.Name:
		near := cluster.Selector{Requirements: []requirements.Requirement{requirements.Any(cluster.SharedClaim + name)}}
		p.Affinity = append(slices.Clip(p.Affinity), cluster.AffinityTerm{Key: corev1.LabelHostname, Selector: &near})
		return c.ask, map[string]int64{}
	case !c.allocated:
		return c.ask, now
	case p.NodeName != "" && c.onlyPod == p.UID:
		return c.ask, anew
	case p.NodeName != "":
		ask.refused = "its devices are on this node, and not for this pod alone: it does not move"
	case c.unread != "":
		ask.refused = c.unread
	default:
		p.VolumeZones = combineAlternatives(p.VolumeZones, c.places)
	}
	return ask, now
}
