package lifecycle

import (
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
)

// initializationTimeout is the reason of a claim whose node did not become usable in time.
const initializationTimeout = "initialization_timeout"

// missingAllowed caps the nodes of a type that may lack a resource while it is bought for it: one may be broken.
const missingAllowed = 2

// noteMissing notes the resources that the claim's node never had, if that is why it ends.
func (r registrar) noteMissing(c cluster.Claim, reason string) (out []plan.Action) {
	nodes := r.nodes[c.ProviderID]
	class, known := r.s.ClassOf(c.ClassKey())
	if reason != initializationTimeout || !known || len(nodes) != 1 {
		return nil
	}
	if lacks, _ := r.whyUninitialized(c, nodes[0]); lacks != v1.ReasonResourceNotRegistered {
		return nil
	}
	of := instancetypes.OfferingKeyOf(c.Labels).Type
	if of == "" { // somebody took the label off, and nothing is known of a type without a name
		return nil
	}
	for _, name := range r.missingResources(c, nodes[0]) {
		out = append(out, plan.Action{Do: plan.NoteMissing, Claim: c.Name, Instance: c.InstanceID(),
			Unused: []instancetypes.UnusedNode{{Class: class.Name, Type: of, Resource: name, Cause: class.CauseOf(of),
				Instance: c.InstanceID(), Allowed: missingAllowed, Why: "its nodes never had " + name}},
			Why: of + " never had " + name})
	}
	return out
}

// missingResources are the requested resources that the node does not offer. One that a DRA driver serves is offered as
// soon as the node has devices of it, whoever uses them: it never comes into status.allocatable.
func (r registrar) missingResources(c cluster.Claim, n cluster.Node) []string {
	return slices.DeleteFunc(c.Requests.Names(), func(name string) bool {
		_, served := r.s.Devices.Server(name)
		return n.Allocatable.Get(name) > 0 || served && n.Capacity.Get(name) > 0
	})
}

// describeServer says after the name of a resource that a node lacks which DeviceClass serves it, and what is in the
// way.
func (r registrar) describeServer(name string) string {
	class, served := r.s.Devices.Server(name)
	switch {
	case !served:
		return ""
	case class.Unread != "":
		return "; DeviceClass " + class.Name + " serves it, whose devices cannot be counted: " + class.Unread
	case class.PerRoot > 0:
		return "; no PCIe root has that many devices by the node's ResourceSlices"
	}
	return "; DeviceClass " + class.Name + " serves it, and no ResourceSlice of the node has a device of driver " +
		class.Driver + " that it selects"
}

// isUsable reports whether nothing keeps the claim's node from being initialized, or nothing but devices that a DRA
// driver may serve: of those that cannot be counted pods may have some, and another node would lack the same. Where
// they can be counted and there are none, it is usable for the pods that it has.
func (r registrar) isUsable(c cluster.Claim) bool {
	nodes := r.nodes[c.ProviderID]
	if len(nodes) != 1 {
		return false
	}
	reason, _ := r.whyUninitialized(c, nodes[0])
	if reason != v1.ReasonResourceNotRegistered {
		return reason == ""
	}
	hasPods := slices.ContainsFunc(r.pods.onNode(nodes[0].Name), func(p cluster.Pod) bool {
		return !p.Terminal() && p.Owner != cluster.OwnerDaemonSet && p.Owner != cluster.OwnerNode
	})
	return !slices.ContainsFunc(r.missingResources(c, nodes[0]), func(name string) bool {
		class, served := r.s.Devices.Server(name)
		counted := served && class.Unread == ""
		return !r.s.Devices.MayServe(name) || counted && !hasPods
	})
}

// isOverdue reports whether the claim's node should have been initialized by now.
func (r registrar) isOverdue(c cluster.Claim) bool {
	limit := r.s.Rules.InitializationTimeout
	return limit > 0 && c.Is(v1.ConditionRegistered) && !c.Is(v1.ConditionInitialized) &&
		!r.s.Now.Before(c.Condition(v1.ConditionRegistered).Since.Add(limit))
}
