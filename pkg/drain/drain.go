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
	Actions []plan.Action
	Waiting []string // pods still on the node, with the reason, sorted
	Done    bool
}

// Next decides the next step for the node. A zero deadline means that draining may take for ever.
func Next(s cluster.Snapshot, node string, deadline time.Time) Step {
	var step Step
	var groups [4][]cluster.Pod
	for _, p := range s.Pods {
		if p.NodeName != node || !waitsFor(p, s.Now) {
			continue
		}
		if a, due := force(p, s.Now, deadline); due {
			step.Waiting = append(step.Waiting, p.Key()+": past the deadline of the node")
			step.Actions = append(step.Actions, a...)
			continue
		}
		groups[group(p)] = append(groups[group(p)], p)
	}
	for _, pods := range groups {
		if len(pods) == 0 {
			continue
		}
		for _, p := range pods {
			actions, why := evict(p, s.Now)
			step.Actions = append(step.Actions, actions...)
			step.Waiting = append(step.Waiting, p.Key()+": "+why)
		}
		break
	}
	slices.Sort(step.Waiting)
	step.Done = len(step.Waiting) == 0
	return step
}

// Protected reports whether the annotation do-not-disrupt protects the pod now (spec core.md §2.1): "true" always, a
// positive duration until that long after the pod started, anything else never.
func Protected(p cluster.Pod, now time.Time) bool {
	if p.DoNotDisrupt == "true" {
		return true
	}
	d, err := time.ParseDuration(p.DoNotDisrupt)
	if err != nil || d <= 0 {
		return false
	}
	return p.Started.IsZero() || now.Before(p.Started.Add(d))
}

// Message says why a drain has not ended, naming the first few pods.
func (s Step) Message() string {
	const most = 3
	if len(s.Waiting) <= most {
		return strings.Join(s.Waiting, "; ")
	}
	return fmt.Sprintf("%s; and %d more pods", strings.Join(s.Waiting[:most], "; "), len(s.Waiting)-most)
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

// force deletes a pod whose grace period would not fit before the deadline any more (spec core.md §5.4).
func force(p cluster.Pod, now, deadline time.Time) ([]plan.Action, bool) {
	if deadline.IsZero() {
		return nil, false
	}
	if p.Terminating() {
		if !p.Deleting.After(deadline) {
			return nil, false
		}
	} else if !now.After(deadline.Add(-time.Duration(p.GraceSec) * time.Second)) {
		return nil, false
	}
	grace := max(int64(deadline.Sub(now)/time.Second), 1)
	return []plan.Action{{Do: plan.DeletePod, Pod: p.Key(), Node: p.NodeName, GraceSec: grace, Reason: "Disrupted",
		Why: fmt.Sprintf("the node ends at %s whatever the pod's budget says", deadline.UTC().Format(time.RFC3339))}}, true
}

func evict(p cluster.Pod, now time.Time) (actions []plan.Action, why string) {
	switch {
	case p.Terminating():
		return nil, "is shutting down"
	case Protected(p, now):
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
