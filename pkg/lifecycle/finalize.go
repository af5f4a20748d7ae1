package lifecycle

import (
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
	"joiner/pkg/drain"
	"joiner/pkg/plan"
)

// finalize is the next step of a claim that is being deleted: deadline, drain, instance, finalizers, in this order (spec
// core.md §5.1 and §5.2).
func (v view) finalize(c cluster.Claim) []plan.Action {
	if !c.Finalizer {
		return nil // ours is gone; what remains belongs to others
	}
	var out []plan.Action
	deadline := v.deadline(c)
	if deadline.IsZero() && c.TerminationGrace != nil {
		deadline = c.Deleting.Add(*c.TerminationGrace)
		out = append(out, plan.Action{Do: plan.SetDeadline, Claim: c.Name, Deadline: deadline,
			Reason: "TerminationGracePeriodExpiring", Why: "draining ends by force at " + deadline.UTC().Format(time.RFC3339)})
	}
	instance, exists := v.instanceOf(c)
	nodes := v.nodes[c.ProviderID]
	if c.ProviderID == "" {
		nodes = nil
	}
	drained := true
	for _, n := range nodes {
		actions, done := v.drainNode(c, n, instance, deadline)
		out = append(out, actions...)
		drained = drained && done
	}
	switch {
	case !drained:
		return out
	case exists && !instance.Gone():
		out = append(out, plan.Action{Do: plan.Terminate, Claim: c.Name, Instance: instance.ID, Why: "its NodeClaim is deleted and drained"})
		return append(out, v.note(c, cluster.Condition{Type: v1.ConditionInstanceTerminating, Status: "True", Reason: v1.ConditionInstanceTerminating})...)
	case exists && instance.State != "terminated":
		return out // shutting down
	}
	for _, n := range nodes {
		out = append(out, plan.Action{Do: plan.ReleaseNode, Node: n.Name})
	}
	return append(out, plan.Action{Do: plan.ReleaseClaim, Claim: c.Name})
}

// drainNode condemns and drains one node of a deleted claim. A node whose instance is gone is not drained: nothing runs there.
func (v view) drainNode(c cluster.Claim, n cluster.Node, i cluster.Instance, deadline time.Time) (out []plan.Action, done bool) {
	if n.Deleting.IsZero() {
		if !n.Finalizer {
			// Not registered: without our finalizer a deletion would take the node away before it is drained.
			out = append(out, plan.Action{Do: plan.RegisterNode, Claim: c.Name, Node: n.Name})
		}
		out = append(out, plan.Action{Do: plan.DeleteNode, Node: n.Name, Claim: c.Name})
	}
	if i.Gone() || i.ID == "" && !n.Ready {
		return out, true
	}
	if !condemned(n) {
		return append(out, plan.Action{Do: plan.CondemnNode, Node: n.Name}), false
	}
	step := drain.Next(v.s, n.Name, deadline)
	for _, a := range step.Actions {
		a.Claim = c.Name
		out = append(out, a)
	}
	if !step.Done {
		return append(out, v.note(c, cluster.Condition{Type: v1.ConditionDrained, Status: "Unknown", Reason: v1.ReasonDraining,
			Message: step.Message()})...), false
	}
	return append(out, v.note(c, cluster.Condition{Type: v1.ConditionDrained, Status: "True", Reason: v1.ConditionDrained})...), true
}

// orphan is the next step of a node of ours whose claim does not lead it: it was deleted by hand, or its claim is gone.
func (v view) orphan(n cluster.Node) (actions []plan.Action, busy bool) {
	if !n.Finalizer {
		return nil, false
	}
	if c, ok := v.owners[n.ProviderID]; ok {
		if !n.Deleting.IsZero() && c.Deleting.IsZero() {
			return []plan.Action{{Do: plan.DeleteClaim, Claim: c.Name, Reason: "node_deleted", Why: "its node was deleted"}}, true
		}
		return nil, false
	}
	i, exists := v.instances[n.ProviderID]
	switch {
	case exists && !i.Gone():
		return nil, true // the leak collector ends the instance first
	case n.Deleting.IsZero():
		return []plan.Action{{Do: plan.DeleteNode, Node: n.Name, Why: "its NodeClaim and its instance are gone"}}, true
	}
	return []plan.Action{{Do: plan.ReleaseNode, Node: n.Name}}, true
}

// instanceOf finds the instance of a claim by its provider id, or, when the launch's reply was lost, by the tag.
func (v view) instanceOf(c cluster.Claim) (cluster.Instance, bool) {
	if c.ProviderID != "" {
		i, ok := v.instances[c.ProviderID]
		return i, ok
	}
	for _, i := range v.s.Instances {
		if i.ClaimUID == c.UID && c.UID != "" && !i.Gone() {
			return i, true
		}
	}
	return cluster.Instance{}, false
}

func (v view) deadline(c cluster.Claim) time.Time {
	t, err := time.Parse(time.RFC3339, c.Annotations[v1.AnnotationTerminationTimestamp])
	if err != nil {
		return time.Time{}
	}
	return t
}

func condemned(n cluster.Node) bool {
	for _, t := range n.Taints {
		if t.Key == v1.TaintDisrupted && t.Effect == "NoSchedule" {
			return true
		}
	}
	return false
}
