package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/drain"
)

// How long a node of stopped capacity runs before it is stopped.
const (
	warmsFor    = 30 * time.Second // at least, from initialized on: DaemonSets come to it meanwhile
	warmsAtMost = 10 * time.Minute // whatever DaemonSets are not ready
)

func isStopped(i cluster.Instance) bool { return i.State == "stopping" || i.State == "stopped" }

// stopWarmed has the initialized node of stopped capacity stopped when its DaemonSets have their images. One that got
// pods of somebody else, which tolerate everything, runs on, and the buffer gets another.
func (st state) stopWarmed(c cluster.Claim) []plan.Action {
	nodes := st.nodes[c.ProviderID]
	if len(nodes) != 1 {
		return nil
	}
	waits := 0
	for _, p := range st.pods.onNode(nodes[0].Name) {
		if p.Owner != cluster.OwnerDaemonSet && p.Owner != cluster.OwnerNode && drain.RemovesPod(p, st.s.Now) {
			return st.writeCondition(c, cluster.Condition{Type: v1.ConditionStopped, Status: "False",
				Reason: v1.ReasonStarted, Message: "pod " + p.Key() + " runs on it"})
		}
		if p.Active() && !p.Ready {
			waits++
		}
	}
	since := c.Condition(v1.ConditionInitialized).Since
	if st.s.Now.Before(since.Add(warmsFor)) || waits > 0 && st.s.Now.Before(since.Add(warmsAtMost)) {
		return st.writeCondition(c, cluster.Condition{Type: v1.ConditionStopped, Status: "Unknown",
			Reason: v1.ReasonWarming, Message: "its node pulls the images of DaemonSets"})
	}
	// written before EC2 is asked, so that who hears of the stop knows whose it is
	return st.writeCondition(c, cluster.Condition{Type: v1.ConditionStopped, Status: "Unknown",
		Reason: v1.ReasonStopping, Message: "its instance is stopped"})
}

// advanceStopped is the step of a claim whose instance we stop or have stopped.
func (st state) advanceStopped(c cluster.Claim) (actions []plan.Action, busy bool) {
	if reason, why := st.stoppedEnds(c); reason != "" {
		return []plan.Action{{Do: plan.DeleteClaim, Claim: c.Name, Reason: reason, Why: why}}, true
	}
	i, listed := st.instances[c.ProviderID]
	waits := c.Is(v1.ConditionStopped)
	switch {
	case !listed:
		return nil, false
	case i.State == "stopped":
		return st.leaveStopped(c), false
	case i.State == "stopping":
		return nil, true
	case !waits:
		return []plan.Action{{Do: plan.StopInstance, Claim: c.Name, Instance: i.ID, Why: "its node is warm"}}, true
	case !c.StartRequested().IsZero(): // whoever started it did not write it down
		return []plan.Action{{Do: plan.WriteStatus, Claim: c.Name, Conditions: StartedConditions()}}, true
	}
	return nil, true
}

// stoppedEnds says why a claim whose instance is stopped must go. Its instance may not be what was launched: it was
// changed or started by somebody else.
func (st state) stoppedEnds(c cluster.Claim) (reason, why string) {
	i, listed := st.instances[c.ProviderID]
	stopped := c.Condition(v1.ConditionStopped)
	switch {
	case c.Expired(st.s.Now):
		return "expired", fmt.Sprintf("it is older than %s", c.ExpireAfter)
	case st.instanceVanished(c):
		return "garbage_collected", "its instance is gone"
	case !listed:
		return "", ""
	case st.typeChanged(c):
		return instanceChanged, fmt.Sprintf("its instance was made a %s by somebody else", i.Type)
	case stopped.Status == "True" && !isStopped(i) && c.StartRequested().IsZero() &&
		!st.s.Now.Before(stopped.Since.Add(st.s.Rules.GarbageCollectionMinAge)):
		return "instance_started", "its instance was started by somebody else"
	}
	return "", ""
}

// instanceChanged is the reason of a claim that goes because its stopped instance was made another type.
const instanceChanged = "instance_changed"

// typeChanged reports whether the instance of stopped capacity is of another type than was launched. Only a stopped
// instance can be changed, which may be started for pods before anybody sees that.
func (st state) typeChanged(c cluster.Claim) bool {
	launched := c.Labels[corev1.LabelInstanceTypeStable]
	i, listed := st.instances[c.ProviderID]
	return c.Annotations[v1.AnnotationStoppedCapacity] == "true" && listed && launched != "" && i.Type != "" &&
		i.Type != launched
}

// leaveStopped lets go of the Node of a stopped instance, and then says on the claim that it waits. Nothing runs on
// the node, so that nothing is drained.
func (st state) leaveStopped(c cluster.Claim) (out []plan.Action) {
	for _, n := range st.nodes[c.ProviderID] {
		if n.Deleting.IsZero() {
			out = append(out, plan.Action{Do: plan.DeleteNode, Claim: c.Name, Node: n.Name,
				Why: "its instance is stopped"})
		}
		if n.Finalizer {
			out = append(out, plan.Action{Do: plan.ReleaseNode, Claim: c.Name, Node: n.Name})
		}
	}
	if c.Is(v1.ConditionStopped) {
		return out
	}
	return append(out, plan.Action{Do: plan.WriteStatus, Claim: c.Name, NoNode: true, Conditions: []cluster.Condition{
		{Type: v1.ConditionStopped, Status: "True", Message: "its instance waits to be started"},
		{Type: v1.ConditionRegistered, Status: "False", Reason: v1.ConditionStopped, Message: "its instance is stopped"},
		{Type: v1.ConditionInitialized, Status: "False", Reason: v1.ConditionStopped, Message: "its instance is stopped"},
	}})
}

// StartedConditions returns the conditions of a claim whose stopped instance was started: from here on it is a node
// that was launched just now.
func StartedConditions() []cluster.Condition {
	return []cluster.Condition{
		{Type: v1.ConditionStopped, Status: "False", Reason: v1.ReasonStarting, Message: "its instance was started for pods"},
		NotJoined(),
		{Type: v1.ConditionInitialized, Status: "Unknown", Reason: v1.ReasonNodeNotFound,
			Message: "its instance was started for pods"},
	}
}

// noteStarted says on a claim whose stopped instance was started that its node is as others are.
func (r registrar) noteStarted(c cluster.Claim) []plan.Action {
	if c.Condition(v1.ConditionStopped).Reason != v1.ReasonStarting || !c.Is(v1.ConditionInitialized) {
		return nil
	}
	return r.writeCondition(c, cluster.Condition{Type: v1.ConditionStopped, Status: "False", Reason: v1.ReasonStarted})
}
