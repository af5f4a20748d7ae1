package cluster

import (
	"slices"
	"strings"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/resources"
)

// Observations returns what nodes have less of for pods than they were launched for, by the key of their class. It has
// what the classes remember, and what the nodes of today say. A class of which no node of today says anything is left
// out, since its types are resolved with what it remembers. Nodes launched for another spec of the class say nothing
// about it.
func (s Snapshot) Observations() map[string][]instancetypes.Observation {
	out := map[string][]instancetypes.Observation{}
	classes := lists.Index(s.Classes, func(c instancetypes.Class) string { return c.Name })
	for _, h := range s.StateNodes() {
		o, ok := h.Shortfall()
		if !ok {
			continue
		}
		key := h.Claim.ClassKey()
		class, ok := classes[key]
		if !ok || h.Claim.Annotations[awsv1.AnnotationHash] != class.Hash {
			continue
		}
		if out[key] == nil {
			out[key] = slices.Clone(class.Observed)
		}
		out[key] = append(out[key], o)
	}
	return out
}

// Shortfall returns what the host's node has less of for pods than its claim was launched for, if anything. It looks at
// what every kubelet reports, and at the devices that the claim was made for once the node is initialized. Other
// devices may come with a driver that nobody has installed yet. What is no estimate gone wrong is left out: nobody
// expects as little of others. The brake on purchases, which counts anew when something is learned, would be off for
// nothing.
func (h StateNode) Shortfall() (o instancetypes.Observation, short bool) {
	if h.Claim == nil || h.Node == nil || !h.Registered() || h.Deleting() || h.Claim.ProviderID == "" {
		return o, false
	}
	o = instancetypes.Observation{Type: h.OfferingKey().Type, Instance: h.Claim.InstanceID()}
	for _, name := range h.Claim.Allocatable.Names() {
		usual := slices.Contains([]string{resources.CPU, resources.Memory, resources.Ephemeral, resources.Pods}, name)
		if !usual && (!h.Initialized() || h.Claim.Requests.Get(name) == 0) {
			continue
		}
		has, estimate := h.Node.Allocatable.Get(name), h.Claim.Allocatable.Get(name)
		if has > 0 && has < estimate && instancetypes.IsPlausible(name, has, estimate) {
			o.Has = append(o.Has, resources.Extended{Name: name, Count: has})
		}
	}
	slices.SortFunc(o.Has, func(a, b resources.Extended) int { return strings.Compare(a.Name, b.Name) })
	return o, o.Type != "" && len(o.Has) > 0
}
