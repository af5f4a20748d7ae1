package lifecycle

import (
	"fmt"
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/drain"
)

// DetachingNodes are the nodes, sorted, whose attached volumes the next step depends on: drained, and not yet rid of
// their volumes. The snapshot must have the attachments of these; of others they are not looked at.
func DetachingNodes(s cluster.Snapshot) []string {
	if !cluster.AnyDeleted(s.Claims) {
		return nil
	}
	st := newState(s)
	var out []string
	for _, c := range st.s.Claims {
		if c.Deleting.IsZero() || !c.Finalizer || volumeWaitOver(c) {
			continue
		}
		for _, n := range st.nodesOf(c, st.instancesOf(c)) {
			if hasDrainTaint(n) && !st.nothingRuns(n) && !drain.PodsLeft(st.pods.onNode(n.Name), s.Now) {
				out = append(out, n.Name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// volumeWaitOver reports whether the question of volumes has been answered: they are gone, or are not waited for any
// more.
func volumeWaitOver(c cluster.Claim) bool {
	s := c.Condition(v1.ConditionVolumesDetached).Status
	return s == "True" || s == "False"
}

// awaitDetachment waits until the volumes of the drained nodes are detached, so that they can be attached elsewhere
// without a fight, until the deadline or for as long as the rules say. Volumes that several nodes may attach at a time
// are not waited for, nor those of pods that stay on the node. Karpenter waits for ever without a deadline; the pods
// are gone by now, and EC2 detaches the volumes of an instance that ends.
func (f finalizer) awaitDetachment(c cluster.Claim, nodes []cluster.Node, deadline time.Time) (out []plan.Action,
	done bool) {
	if volumeWaitOver(c) || !slices.ContainsFunc(nodes, func(n cluster.Node) bool { return !f.nothingRuns(n) }) {
		return nil, true
	}
	var left []string
	for _, n := range nodes {
		names := f.attachedVolumes(n)
		left = append(left, names...)
		if len(names) > 0 {
			out = append(out, plan.Action{Do: plan.Tell, Claim: c.Name, Node: n.Name,
				Reason: v1.ReasonAwaitingVolumeDetachment,
				Why:    "waiting for volumes to be detached: " + lists.Name(names, ", ")})
		}
	}
	state := func(status, reason, message string) []plan.Action {
		return f.writeCondition(c, cluster.Condition{Type: v1.ConditionVolumesDetached, Status: status, Reason: reason,
			Message: message})
	}
	drained, limit := c.Condition(v1.ConditionDrained), f.s.Rules.DetachTimeout
	switch {
	case len(left) == 0:
		return state("True", v1.ConditionVolumesDetached, ""), true
	case !deadline.IsZero() && f.s.Now.After(deadline):
		return state("False", v1.ReasonTerminationGracePeriodElapsed, "still attached: "+lists.Name(left, ", ")), true
	case limit > 0 && drained.Status == "True" && !f.s.Now.Before(drained.Since.Add(limit)):
		return state("False", v1.ReasonDetachTimeout,
			fmt.Sprintf("still attached %s after the node was drained: %s", limit, lists.Name(left, ", "))), true
	}
	return append(out, state("Unknown", v1.ReasonAwaitingVolumeDetachment, lists.Name(left, ", "))...), false
}

// attachedVolumes are the volumes of a node that are waited for, sorted.
func (f finalizer) attachedVolumes(n cluster.Node) []string {
	if f.nothingRuns(n) {
		return nil
	}
	var out []string
	for _, a := range f.s.Attachments {
		if a.Node == n.Name && !a.Shared && !f.staysInUse(n, a) {
			out = append(out, a.Volume)
		}
	}
	slices.Sort(out)
	return out
}

// staysInUse reports whether a pod that the drain leaves on the node has the volume.
func (f finalizer) staysInUse(n cluster.Node, a cluster.Attachment) bool {
	return a.Claim != "" && slices.ContainsFunc(f.pods.onNode(n.Name), func(p cluster.Pod) bool {
		return !drain.RemovesPod(p, f.s.Now) && slices.ContainsFunc(p.Volumes,
			func(has cluster.Volume) bool { return has.ID == a.Claim })
	})
}
