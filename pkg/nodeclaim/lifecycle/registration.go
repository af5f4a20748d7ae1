package lifecycle

import (
	"fmt"
	"strconv"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/model/plan"
)

// registerClaim matches a launched claim with the one node of its provider id. The unregistered taint is
// dropped if the user brought it; Joiner's own user data does not set it, so that pods need not wait for this step.
func (r registrar) registerClaim(c cluster.Claim) []plan.Action {
	nodes := r.nodes[c.ProviderID]
	switch {
	case len(nodes) == 0:
		return r.writeCondition(c, r.absentNode(c))
	case len(nodes) > 1:
		return r.writeCondition(c, cluster.Condition{Type: v1.ConditionRegistered, Status: "False",
			Reason:  v1.ReasonMultipleNodesFound,
			Message: fmt.Sprintf("%d nodes carry this provider id", len(nodes))})
	}
	n := nodes[0]
	if lacksPartition(c) {
		i := r.instances[c.ProviderID]
		if i.Partition == 0 {
			return r.writeCondition(c, cluster.Condition{Type: v1.ConditionRegistered, Status: "Unknown",
				Reason:  reasonPartitionUnknown,
				Message: "EC2 has not told yet which partition of the placement group the instance is in"})
		}
		labels := map[string]string{instancetypes.LabelPartition: strconv.Itoa(int(i.Partition))}
		return append([]plan.Action{{Do: plan.AdoptClaim, Claim: c.Name, Labels: labels}}, r.registerNode(c, n)...)
	}
	return r.registerNode(c, n)
}

// hasJoined reports whether the claim's one node is there and can be registered in this pass. That it was not
// before is the fault of passes that died, not of the node.
func (r registrar) hasJoined(c cluster.Claim) bool {
	return len(r.nodes[c.ProviderID]) == 1 && (!lacksPartition(c) || r.instances[c.ProviderID].Partition != 0)
}

// lacksPartition reports whether the partition of the claim's placement group is not known yet.
func lacksPartition(c cluster.Claim) bool {
	number, open := c.Labels[instancetypes.LabelPartition]
	return open && number == ""
}

// NotJoined returns the condition of a claim whose instance has no node yet.
func NotJoined() cluster.Condition {
	return cluster.Condition{Type: v1.ConditionRegistered, Status: "Unknown", Reason: v1.ReasonNodeNotFound,
		Message: "no node with this provider id has joined the cluster yet"}
}

// absentNode returns the condition of a claim that has no node: none yet, or none any more.
func (r registrar) absentNode(c cluster.Claim) cluster.Condition {
	k := NotJoined()
	other, misnamed := r.misnamed[c.ProviderID]
	switch {
	case c.NodeName != "":
		k.Message = "its node " + c.NodeName + " was removed from the cluster"
	case misnamed:
		k.Message = fmt.Sprintf("node %s carries this provider id, and EC2 calls the instance %s: a node has the name of its instance",
			other, r.instances[c.ProviderID].NodeName)
	}
	return k
}

// reasonPartitionUnknown holds a registration back until its node can be labelled with its partition.
const reasonPartitionUnknown = "PartitionUnknown"

// registerNode registers the node, and says in the same write what it lacks to be initialized; one that lacks nothing
// is initialized too.
func (r registrar) registerNode(c cluster.Claim, n cluster.Node) []plan.Action {
	status := plan.Action{Do: plan.WriteStatus, Claim: c.Name, NodeName: n.Name, Conditions: []cluster.Condition{
		{Type: v1.ConditionRegistered, Status: "True"}}}
	out := []plan.Action{{Do: plan.RegisterNode, Claim: c.Name, Node: n.Name}}
	for _, a := range r.initializeAs(c, withTaints(n, c)) {
		if a.Do == plan.WriteStatus {
			status.Conditions = append(status.Conditions, a.Conditions...)
		} else {
			out = append(out, a)
		}
	}
	return append(out, status)
}

// withTaints is the node with the taints that it gets when it is registered.
func withTaints(n cluster.Node, c cluster.Claim) cluster.Node {
	n.Taints = cluster.WithoutTaint(nomination.TaintsOnRegistration(n.Taints, c), v1.TaintUnregistered)
	n.Taints = cluster.WithoutTaint(n.Taints, v1.TaintStoppedCapacity)
	if n.Labels[v1.LabelDoNotSyncTaints] != "true" && n.Labels[v1.LabelRegistered] != "true" {
		n.Taints = append(n.Taints, c.StartupTaints...)
	}
	return n
}

// tagInstance has the instance of a registered claim named after its node, claim and cluster, once.
func (r registrar) tagInstance(c cluster.Claim) []plan.Action {
	i, ok := r.instances[c.ProviderID]
	nodes := r.nodes[c.ProviderID]
	if !ok || i.Gone() || r.isShifted(i) || len(nodes) != 1 ||
		c.Annotations[awsv1.AnnotationInstanceTagged] == "true" && c.Annotations[awsv1.AnnotationClusterNameTagged] == "true" {
		return nil
	}
	return []plan.Action{{Do: plan.TagInstance, Claim: c.Name, Node: nodes[0].Name, Instance: i.ID}}
}

// initializeNode initializes the registered node of the claim, or says what it lacks for that.
func (r registrar) initializeNode(c cluster.Claim) []plan.Action {
	nodes := r.nodes[c.ProviderID]
	if len(nodes) != 1 {
		return r.writeCondition(c, cluster.Condition{Type: v1.ConditionInitialized, Status: "Unknown",
			Reason:  v1.ReasonNodeNotFound,
			Message: fmt.Sprintf("%d nodes carry this provider id", len(nodes))})
	}
	return r.initializeAs(c, nodes[0])
}

// initializeAs is initializeNode for the claim's one node.
func (r registrar) initializeAs(c cluster.Claim, n cluster.Node) []plan.Action {
	if open := r.openHeldNode(c, n); open != nil {
		return open
	}
	if reason, message := r.whyUninitialized(c, n); reason != "" {
		return r.writeCondition(c, cluster.Condition{Type: v1.ConditionInitialized, Status: "Unknown", Reason: reason,
			Message: message})
	}
	return []plan.Action{
		{Do: plan.InitializeNode, Claim: c.Name, Node: n.Name},
		{Do: plan.WriteStatus, Claim: c.Name, Conditions: []cluster.Condition{
			{Type: v1.ConditionInitialized, Status: "True"}, compareWithClaim(c, n)}},
	}
}

// openHeldNode takes the hold off the claim's node, unless it is held for pods still.
func (r registrar) openHeldNode(c cluster.Claim, n cluster.Node) []plan.Action {
	t, held := nomination.TaintOf(c)
	if !n.Ready || !held || !nomination.IsHeld(n) {
		return nil
	}
	why := nomination.ReleaseReason(t, n, r.waiting, r.s.Now)
	if why == "" || r.evictions.AwaitsPods(c, n) {
		return nil
	}
	return []plan.Action{{Do: plan.OpenNode, Claim: c.Name, Node: n.Name, Why: why}}
}

// reopenNode opens the node of an initialized claim that its kubelet has made anew, with the hold of its boot.
func (r registrar) reopenNode(c cluster.Claim) []plan.Action {
	if nodes := r.nodes[c.ProviderID]; len(nodes) == 1 {
		return r.openHeldNode(c, nodes[0])
	}
	return nil
}

// whyUninitialized says what keeps the node from being initialized, the first thing if several do; nothing if nothing
// does.
func (r registrar) whyUninitialized(c cluster.Claim, n cluster.Node) (reason, message string) {
	if !n.Ready {
		return v1.ReasonNodeNotReady, "the node is not Ready"
	}
	for _, t := range n.Taints {
		for _, s := range c.StartupTaints {
			if t.Key == s.Key && t.Effect == s.Effect {
				return v1.ReasonStartupTaintsExist, "startup taint " + t.String() + " is still on the node"
			}
		}
	}
	for _, t := range n.Taints {
		if t.Ephemeral() {
			return v1.ReasonKnownEphemeralTaintsExist, "taint " + t.String() + " is still on the node"
		}
	}
	if t, found := c.AgentTaint(n, r.s.Now); found {
		return v1.ReasonKnownEphemeralTaintsExist, "taint " + t.String() +
			" is still on the node; its NodePool does not declare it under startupTaints"
	}
	if missing := r.missingResources(c, n); len(missing) > 0 {
		return v1.ReasonResourceNotRegistered,
			"the node does not offer " + missing[0] + " yet" + r.describeServer(missing[0])
	}
	return "", ""
}

// writeCondition writes a condition if it says something new.
func (x index) writeCondition(c cluster.Claim, k cluster.Condition) []plan.Action {
	have := c.Condition(k.Type)
	if have.Status == k.Status && have.Reason == k.Reason && have.Message == k.Message {
		return nil
	}
	return []plan.Action{{Do: plan.WriteStatus, Claim: c.Name, Conditions: []cluster.Condition{k}}}
}
