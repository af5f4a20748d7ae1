package interruption

import (
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// RemovePods are the actions that rid a node of its pods when no drain can, sorted by pod. A kubelet that goes down is
// told, with each pod's own grace period, so that whoever made the pod makes another; where nothing runs any more pods
// are removed, which is a grace period of 0. Pods that have ended and static ones go with their node, and so do those
// of DaemonSets while it is there.
func RemovePods(rest PodRemoval, pods []cluster.Pod) []plan.Action {
	var out []plan.Action
	for _, p := range pods {
		a := plan.Action{Do: plan.DeletePod, Pod: p.Key(), Node: p.NodeName, Reason: "Disrupted"}
		switch {
		case rest == LeaveToDrain || p.Terminal() || p.Owner == cluster.OwnerNode:
			continue
		case rest == ForgetPods:
			a.Why = "nothing runs on its node any more"
		case p.Terminating() || p.Owner == cluster.OwnerDaemonSet:
			continue
		default:
			a.GraceSec, a.Why = max(p.GraceSec, 1), "its node goes down"
		}
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b plan.Action) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}
