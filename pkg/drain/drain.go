// Package drain decides which pods of a condemned node go next.
//
// It knows the order of spec core.md §5.3, do-not-disrupt and the deadline of §5.4. It refuses to know budgets: the eviction
// API judges those. Calling it again with a fresh snapshot is the next step; it keeps no state.
package drain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
	"joiner/pkg/plan"
)

// stuckAfter is how long past its deletion time a pod is waited for (spec core.md §2.1, stuck terminating).
const stuckAfter = time.Minute

// Step is what to do on the node now. With Done nothing is left to wait for.
type Step struct {
	Actions []plan.Action // sorted by pod
	Waiting []string      // pods still on the node, with the reason, sorted
	Done    bool
}

// Next decides the next step for the pods of one node. A zero deadline means that draining may take for ever.
func Next(pods []cluster.Pod, now, deadline time.Time) Step {
	var step Step
	var groups [4][]cluster.Pod
	for _, p := range pods {
		if !waitsFor(p, now) {
			continue
		}
		if a, due := force(p, now, deadline); due {
			step.Waiting = append(step.Waiting, p.Key()+": past the deadline of the node")
			step.Actions = append(step.Actions, a)
			continue
		}
		groups[group(p)] = append(groups[group(p)], p)
	}
	for _, first := range groups {
		if len(first) == 0 {
			continue
		}
		for _, p := range first {
			actions, why := evict(p, now)
			step.Actions = append(step.Actions, actions...)
			step.Waiting = append(step.Waiting, p.Key()+": "+why)
		}
		break
	}
	slices.SortFunc(step.Actions, func(a, b plan.Action) int { return strings.Compare(a.Pod, b.Pod) })
	slices.Sort(step.Waiting)
	step.Done = len(step.Waiting) == 0
	return step
}

// Message says why a drain has not ended, naming the first few of those waited for.
func Message(waiting []string) string {
	const most = 3
	if len(waiting) <= most {
		return strings.Join(waiting, "; ")
	}
	return fmt.Sprintf("%s; and %d more pods", strings.Join(waiting[:most], "; "), len(waiting)-most)
}

// waitsFor reports whether the drain must get rid of the pod: it has not ended, does not tolerate the disrupted taint, is no
// static pod, and is not stuck (spec core.md §2.1, waiting eviction).
func waitsFor(p cluster.Pod, now time.Time) bool {
	if p.Terminal() || p.Owner == cluster.OwnerNode || p.Terminating() && now.After(p.Deleting.Add(stuckAfter)) {
		return false
	}
	taint := cluster.Taint{Key: v1.TaintDisrupted, Effect: "NoSchedule"}
	return len(cluster.Untolerated([]cluster.Taint{taint}, p.Tolerations)) > 0
}

// force deletes a pod whose grace period would not fit before the deadline any more (spec core.md §5.4). Of a pod that is being
// deleted already it only brings the end forward.
func force(p cluster.Pod, now, deadline time.Time) (plan.Action, bool) {
	if deadline.IsZero() {
		return plan.Action{}, false
	}
	grace := max(int64(deadline.Sub(now)/time.Second), 1)
	end := now.Add(time.Duration(grace) * time.Second)
	switch {
	case !p.Terminating() && !now.After(deadline.Add(-time.Duration(p.GraceSec)*time.Second)):
		return plan.Action{}, false
	case p.Terminating() && (!p.Deleting.After(deadline) || !p.Deleting.After(end)):
		return plan.Action{}, false
	}
	return plan.Action{Do: plan.DeletePod, Pod: p.Key(), Node: p.NodeName, GraceSec: grace, Reason: "Disrupted",
		Why: fmt.Sprintf("the node ends at %s whatever the pod's budget says", deadline.UTC().Format(time.RFC3339))}, true
}

func evict(p cluster.Pod, now time.Time) (actions []plan.Action, why string) {
	switch {
	case p.Terminating():
		return nil, "is shutting down"
	case p.Protected(now):
		return nil, "is protected by karpenter.sh/do-not-disrupt"
	}
	return []plan.Action{{Do: plan.Evict, Pod: p.Key(), Node: p.NodeName}}, "is being evicted"
}

// group is the place of the pod in the order of spec core.md §5.3.
func group(p cluster.Pod) int {
	g := 0
	if p.Critical {
		g += 2
	}
	if p.Owner == cluster.OwnerDaemonSet {
		g++
	}
	return g
}
