package lifecycle

import (
	"cmp"
	"slices"
	"strings"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/drain"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// lateBindingWatch is the watch over a drained node for pods that the scheduler was binding when the taint came.
const lateBindingWatch = 5 * time.Second

// tellAfter is the time that a drain may take before its claim says anew whom it waits for, whenever that changes: at
// first it changes with every pod.
const tellAfter = 15 * time.Second

// finalizeClaim returns the next actions for a claim that is being deleted: deadline, drain, volumes, instance,
// finalizers. All carry the claim's name, so that they are applied in this order.
func (f finalizer) finalizeClaim(c cluster.Claim) []plan.Action {
	instances := f.instancesOf(c)
	nodes := f.nodesOf(c, instances)
	out, deadline := f.drainDeadline(c, nodes)
	drained, done := f.drainNodes(c, nodes, deadline)
	out = append(out, drained...)
	if !done {
		return out
	}
	detached, done := f.awaitDetachment(c, nodes, deadline)
	out = append(out, detached...)
	if !done {
		return out
	}
	ended, gone := f.terminateInstances(c, instances)
	out = append(out, ended...)
	if !gone {
		return out
	}
	for _, n := range nodes {
		if n.Finalizer {
			out = append(out, plan.Action{Do: plan.ReleaseNode, Claim: c.Name, Node: n.Name})
		}
	}
	return append(out, plan.Action{Do: plan.ReleaseClaim, Claim: c.Name})
}

// untilTick is the longest gap between two lifecycle passes while no work is pending: the schedule's minute and a cold
// start.
const untilTick = 75 * time.Second

// blockedForLong reports whether the end of the claim has taken long, somebody else has to do something first, no pod
// comes or goes for which others of the node wait, and none has to be deleted before somebody looks again. A drain may
// be blocked for days, and no invocation is to stay and to be paid for only to watch that.
func (f finalizer) blockedForLong(c cluster.Claim, steps []plan.Action) bool {
	if !c.BlockedForLong(f.s.Now) || slices.ContainsFunc(steps, func(a plan.Action) bool { return a.Do != plan.Tell }) {
		return false
	}
	deadline := c.Deadline()
	return !slices.ContainsFunc(f.nodesOf(c, f.instancesOf(c)), func(n cluster.Node) bool {
		return f.podBudgets.ChangesSoon(f.pods.onNode(n.Name), f.s.Pods, f.s.Now) ||
			!deadline.IsZero() && drain.IsDue(f.pods.onNode(n.Name), deadline, f.s.Now, f.s.Now.Add(untilTick))
	})
}

// joinStatusWrites makes one write of status writes that follow each other. They are on the same claim.
func joinStatusWrites(actions []plan.Action) []plan.Action {
	var out []plan.Action
	for _, a := range actions {
		if n := len(out) - 1; n >= 0 && a.Do == plan.WriteStatus && out[n].Do == plan.WriteStatus && a.NodeName == "" {
			out[n].Conditions = append(slices.Clone(out[n].Conditions), a.Conditions...)
			continue
		}
		out = append(out, a)
	}
	return out
}

// byDeadline puts the claim with the earlier deadline first, and those without one last.
func byDeadline(a, b cluster.Claim) int {
	x, y := a.Deadline(), b.Deadline()
	return cmp.Or(lists.TrueFirst(!x.IsZero(), !y.IsZero()), x.Compare(y))
}

// drainDeadline returns when draining the claim's nodes must end, zero for never. It is fixed once, in an annotation.
func (f finalizer) drainDeadline(c cluster.Claim, nodes []cluster.Node) (out []plan.Action, t time.Time) {
	if t = c.Deadline(); !t.IsZero() || c.TerminationGrace == nil {
		return nil, t
	}
	t = c.Deleting.Add(*c.TerminationGrace)
	why := "draining ends by force at " + t.UTC().Format(time.RFC3339)
	for _, n := range nodes {
		out = append(out, plan.Action{Do: plan.Tell, Claim: c.Name, Node: n.Name, Warning: true,
			Reason: "TerminationGracePeriodExpiring", Why: why})
	}
	return append(out, plan.Action{Do: plan.SetDeadline, Claim: c.Name, Deadline: t,
		Reason: "TerminationGracePeriodExpiring", Why: why}), t
}

// drainNodes takes every node of a deleted claim out of service and rids it of its pods. A node on which nothing runs
// any more is not drained. When no pod is left, late ones are waited for.
func (f finalizer) drainNodes(c cluster.Claim, nodes []cluster.Node, deadline time.Time) (out []plan.Action,
	done bool) {
	var waiting []string
	running := false
	for _, n := range nodes {
		actions, left := f.drainNode(c, n, deadline)
		out, waiting = append(out, actions...), append(waiting, left...)
		running = running || !f.nothingRuns(n)
	}
	state := c.Condition(v1.ConditionDrained)
	waits := func(message string) []plan.Action {
		if state.Reason == v1.ReasonDraining && f.s.Now.Before(c.Deleting.Add(tellAfter)) {
			return nil
		}
		return f.writeCondition(c, cluster.Condition{Type: v1.ConditionDrained, Status: "Unknown",
			Reason: v1.ReasonDraining, Message: message})
	}
	switch {
	case len(waiting) > 0:
		return append(out, waits(drain.BlockedMessage(waiting))...), false
	case !running || state.Status == "True":
		return out, true
	case state.Reason != v1.ReasonDraining || f.s.Now.Before(state.Since.Add(lateBindingWatch)):
		return append(out, waits("no pod is left; late ones are waited for")...), false
	}
	return append(out, f.writeCondition(c, cluster.Condition{Type: v1.ConditionDrained, Status: "True",
		Reason: v1.ConditionDrained})...), true
}

// drainNode taints a node and takes the next step of its drain, and says who is waited for. The taint comes first, so
// that no pod arrives meanwhile; our finalizer comes before the deletion, which would take the node away else. Load
// balancers use the node while one of its pods may not go yet: of many nodes that drain at once all would leave them,
// with the pods that a budget keeps there.
func (f finalizer) drainNode(c cluster.Claim, n cluster.Node, deadline time.Time) (out []plan.Action,
	waiting []string) {
	step := func(do plan.ActionKind) { out = append(out, plan.Action{Do: do, Claim: c.Name, Node: n.Name}) }
	idle, pods, soon := f.nothingRuns(n), f.pods.onNode(n.Name), f.endsSoon(deadline)
	if !idle && !hasDrainTaint(n) {
		waiting = append(waiting, "node "+n.Name+" is being taken out of service")
		if !soon && f.podBudgets.Concern(pods, f.s.Now) {
			step(plan.TaintNode)
		} else {
			step(plan.TaintForTermination)
		}
	}
	if n.Deleting.IsZero() {
		if !idle && !n.Finalizer && c.Name != "" {
			step(plan.RegisterNode)
		}
		step(plan.DeleteNode)
	}
	if idle || waiting != nil {
		return out, waiting
	}
	next := drain.NextStep(pods, f.podBudgets,
		drain.DrainTimes{Now: f.s.Now, Deadline: deadline, First: interruption.FirstUntil(c), PassTook: f.s.PassTook})
	if !isExcluded(n) && (soon || !next.Held) {
		step(plan.ExcludeNode)
	}
	for _, a := range next.Actions {
		a.Claim = c.Name
		out = append(out, a)
	}
	if len(next.Blocked) > 0 {
		out = append(out, plan.Action{Do: plan.Tell, Claim: c.Name, Node: n.Name, Warning: true,
			Reason: "FailedDraining",
			Why:    "waiting for pods to go: " + drain.BlockedMessage(next.Blocked)})
	}
	return out, next.Waiting
}

// forceEnd is the deadline of a claim that is being deleted, and whose node dies before it is drained.
func (st state) forceEnd(c cluster.Claim) []plan.Action {
	if c.Is(v1.ConditionInstanceTerminating) {
		return nil
	}
	if _, why := st.impairmentOf(c); why != "" {
		return st.forceDeadline(c, why)
	}
	if n, why := st.illnessOf(c); why != "" && n.Annotations[v1.AnnotationDoNotRepair] != "true" &&
		st.massIllness(c) == "" {
		return st.forceDeadline(c, why)
	}
	return nil
}

// forceDeadline has the claim end by force now, unless its deadline has passed.
func (x index) forceDeadline(c cluster.Claim, why string) []plan.Action {
	if t := c.Deadline(); !t.IsZero() && !t.After(x.s.Now) {
		return nil
	}
	return []plan.Action{{Do: plan.SetDeadline, Claim: c.Name, Deadline: x.s.Now,
		Reason: "TerminationGracePeriodExpiring", Why: "it is ended by force now: " + why}}
}

// nothingRuns reports whether nothing runs on the node any more: its instance ended or was stopped, or it is unknown to
// EC2 and not Ready. Of an instance that we started just now EC2 may tell what was before.
func (x index) nothingRuns(n cluster.Node) bool {
	if i, ok := x.instances[n.ProviderID]; ok {
		return i.Gone() || i.State == "stopped" && !x.owners[n.ProviderID].JustStarted(x.s.Now)
	}
	return !n.Ready
}

// terminateInstances terminates the instances of a drained claim and waits until they are gone. An instance that EC2
// does not list, because it is too new or lost its tags, is terminated by the id in the claim and not waited for.
func (f finalizer) terminateInstances(c cluster.Claim, instances []cluster.Instance) (out []plan.Action, gone bool) {
	gone = true
	for _, i := range instances {
		switch {
		case !i.Gone() && f.isShifted(i):
			out = append(out, f.tellKept(c, i.ID, i.Zone))
		case !i.Gone():
			out = append(out, plan.Action{Do: plan.Terminate, Claim: c.Name, Instance: i.ID,
				Why: "its NodeClaim is deleted and drained"})
		}
		gone = gone && i.State == "terminated"
	}
	asked := c.Is(v1.ConditionInstanceTerminating)
	if _, listed := f.instances[c.ProviderID]; c.ProviderID != "" && !listed && !asked && !f.sharesInstance(c) {
		id := c.InstanceID()
		if zone := c.Labels[instancetypes.LabelZone]; f.isShifted(cluster.Instance{Zone: zone}) {
			return append(out, f.tellKept(c, id, zone)), false
		}
		out = append(out, plan.Action{Do: plan.Terminate, Claim: c.Name, Instance: id,
			Why: "its NodeClaim is deleted, and EC2 does not list it"})
	}
	if terminates := func(a plan.Action) bool { return a.Do == plan.Terminate }; !gone &&
		slices.ContainsFunc(out, terminates) {
		k := cluster.Condition{Type: v1.ConditionInstanceTerminating, Status: "True",
			Reason: v1.ConditionInstanceTerminating}
		out = append(out, f.writeCondition(c, k)...)
	}
	return out, gone
}

// finalizeOrphanNode is the next step of a node of ours that no claim leads: the claim is gone. Its instance is for
// leaks to end.
func (f finalizer) finalizeOrphanNode(n cluster.Node) (actions []plan.Action, busy bool) {
	if !n.Finalizer || n.Labels[awsv1.LabelEC2NodeClass] == "" || f.hasOwner(n) {
		return nil, false
	}
	if i, ok := f.instances[n.ProviderID]; ok && !i.Gone() {
		return nil, true
	}
	if n.Deleting.IsZero() && !f.nothingRuns(n) {
		return nil, false // something runs there that is not ours to end
	}
	actions, waiting := f.drainNode(cluster.Claim{}, n, time.Time{})
	if len(waiting) > 0 {
		return actions, true
	}
	return append(actions, plan.Action{Do: plan.ReleaseNode, Node: n.Name}), true
}

// hasOwner reports whether a claim says what happens to the node.
func (f finalizer) hasOwner(n cluster.Node) bool {
	if _, ok := f.owners[n.ProviderID]; ok && n.ProviderID != "" {
		return true
	}
	_, ok := f.claims[f.instances[n.ProviderID].ClaimUID]
	return ok
}

// instancesOf are the instances that end with the claim: that of its provider id, and those that were started for it
// without its knowing, because the reply of a launch was lost. What another claim has is that claim's.
func (f finalizer) instancesOf(c cluster.Claim) []cluster.Instance {
	var out []cluster.Instance
	if i, listed := f.instances[c.ProviderID]; listed {
		if owner, owned := f.owners[c.ProviderID]; owned && (owner.UID == c.UID || !f.sharesInstance(c)) {
			out = append(out, i)
		}
	}
	for _, i := range f.started[c.UID] {
		if _, owned := f.owners[i.ProviderID()]; !owned {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b cluster.Instance) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// sharesInstance reports whether a claim that is not being deleted has the same provider id, as after restoring a
// backup.
func (f finalizer) sharesInstance(c cluster.Claim) bool {
	o, ok := f.owners[c.ProviderID]
	return ok && o.UID != c.UID && o.Deleting.IsZero()
}

// nodesOf are the nodes that end with the claim.
func (f finalizer) nodesOf(c cluster.Claim, instances []cluster.Instance) []cluster.Node {
	var ids []string
	if c.ProviderID != "" && !f.sharesInstance(c) {
		ids = append(ids, c.ProviderID)
	}
	for _, i := range instances {
		if !slices.Contains(ids, i.ProviderID()) {
			ids = append(ids, i.ProviderID())
		}
	}
	var out []cluster.Node
	for _, id := range ids {
		out = append(out, f.nodes[id]...)
	}
	return out
}

func hasDrainTaint(n cluster.Node) bool {
	return slices.ContainsFunc(n.Taints, func(t cluster.Taint) bool {
		return t.Key == v1.TaintDisrupted &&
			t.Effect == "NoSchedule"
	})
}

// isExcluded reports whether load balancers leave the node out.
func isExcluded(n cluster.Node) bool {
	_, excluded := n.Labels[v1.LabelExcludeBalancers]
	return excluded
}

// balancersNeed is the time before its end by force at which a node leaves load balancers, whatever its pods wait for.
// A target group gives the connections of a target 300 seconds unless it says otherwise.
const balancersNeed = 5 * time.Minute

// endsSoon reports whether load balancers need the time until the deadline to let go of a node.
func (f finalizer) endsSoon(deadline time.Time) bool {
	return !deadline.IsZero() && !f.s.Now.Add(balancersNeed).Before(deadline)
}

// advanceEnding decides the next step of a claim that is being deleted.
func (st *state) advanceEnding(c cluster.Claim) []plan.Action {
	steps, _ := st.pendingChanges(c)
	if len(steps) == 0 {
		steps = st.forceEnd(c)
	}
	if len(steps) == 0 {
		steps = joinStatusWrites(st.finalizeClaim(c))
	}
	return steps
}
