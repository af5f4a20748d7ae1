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
	for _, node := range s.StateNodes() {
		o, ok := node.Shortfall()
		if !ok {
			continue
		}
		key := node.Claim.ClassKey()
		class, ok := classes[key]
		if !ok || node.Claim.Annotations[awsv1.AnnotationHash] != class.Hash {
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
func (node StateNode) Shortfall() (o instancetypes.Observation, short bool) {
	if node.Claim == nil || node.Node == nil || !node.Registered() || node.Deleting() || node.Claim.ProviderID == "" {
		return o, false
	}
	o = instancetypes.Observation{Type: node.OfferingKey().Type, Instance: node.Claim.InstanceID()}
	for _, name := range node.Claim.Allocatable.Names() {
		usual := slices.Contains([]string{resources.CPU, resources.Memory, resources.Ephemeral, resources.Pods}, name)
		if !usual && (!node.Initialized() || node.Claim.Requests.Get(name) == 0) {
			continue
		}
		has, estimate := node.Node.Allocatable.Get(name), node.Claim.Allocatable.Get(name)
		if has > 0 && has < estimate && instancetypes.IsPlausible(name, has, estimate) {
			o.Has = append(o.Has, resources.Extended{Name: name, Count: has})
		}
	}
	slices.SortFunc(o.Has, func(a, b resources.Extended) int { return strings.Compare(a.Name, b.Name) })
	return o, o.Type != "" && len(o.Has) > 0
}
