package drain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// stuckAfter is the time past its deletion time for which a pod is waited for (stuck terminating).
const stuckAfter = time.Minute

// unwatched is the time for which nobody may look, between one invocation and the next: what would be too late by then
// is done now.
const unwatched = 10 * time.Second

// longestPass bounds what is made of a pass that took long, so that budgets count for most of two minutes.
const longestPass = 20 * time.Second

// DrainTimes are the times that a drain keeps to.
type DrainTimes struct {
	Now      time.Time
	Deadline time.Time     // by when all pods must be gone; zero for never
	First    time.Time     // before then no pod is asked to go that still has time; zero for no such time
	PassTook time.Duration // the pass before this one; in a storm passes are long, and the next comes as much later

	looked time.Duration // after Now
}

// DrainStep holds what to do on the node now. With Done nothing is left to wait for.
type DrainStep struct {
	Actions []plan.Action // sorted by pod
	Waiting []string      // pods still on the node, with the reason, sorted
	Blocked []string      // those of them that will not go by themselves, sorted
	Done    bool          // no pod is left that drains
	// a pod that is not known to go yet is protected, or under a budget that allows nothing or has not been asked
	Held bool
}

// PodsLeft reports whether any of the pods keeps its node from being drained.
func PodsLeft(pods []cluster.Pod, now time.Time) bool {
	return slices.ContainsFunc(pods, func(p cluster.Pod) bool { return waitsFor(p, now) })
}

// RemovesPod reports whether the drain of its node gets rid of the pod at all, sooner or later.
func RemovesPod(p cluster.Pod, now time.Time) bool { return p.Terminal() || waitsFor(p, now) }

// IsDue reports whether a pod that is not being deleted yet will have to be before then, so that its grace period fits
// before the deadline.
func IsDue(pods []cluster.Pod, deadline, now, then time.Time) bool {
	return slices.ContainsFunc(pods, func(p cluster.Pod) bool {
		return waitsFor(p, now) && !p.Terminating() && then.After(deadline.Add(-graceOf(p)))
	})
}

// NextStep decides the next step for the pods of one node.
func NextStep(pods []cluster.Pod, podBudgets *PodBudgets, t DrainTimes) DrainStep {
	var step DrainStep
	var groups [4][]cluster.Pod
	for _, p := range pods {
		if !waitsFor(p, t.Now) {
			continue
		}
		if !step.forceDelete(p, t) {
			groups[drainGroup(p)] = append(groups[drainGroup(p)], p)
		}
	}
	turn := true
	for _, all := range groups {
		slices.SortFunc(all, func(a, b cluster.Pod) int { return strings.Compare(a.Key(), b.Key()) })
		for _, p := range all {
			evicted := turn && step.requestEviction(p, podBudgets, t)
			forced := !evicted && step.forceDelete(p, t.atLater())
			step.Held = step.Held || !turn && !forced && podBudgets.holds(p, t.Now)
		}
		turn = turn && len(all) == 0
	}
	slices.SortFunc(step.Actions, func(a, b plan.Action) int { return strings.Compare(a.Pod, b.Pod) })
	slices.Sort(step.Waiting)
	slices.Sort(step.Blocked)
	step.Done, step.Held = len(step.Waiting) == 0, step.Held || len(step.Blocked) > 0
	return step
}

// BlockedMessage says why a drain has not ended, naming the first few of those waited for.
func BlockedMessage(waiting []string) string {
	const most = 3
	if len(waiting) <= most {
		return strings.Join(waiting, "; ")
	}
	return fmt.Sprintf("%s; and %d more pods", strings.Join(waiting[:most], "; "), len(waiting)-most)
}

// waitsFor reports whether the drain must get rid of the pod: it has not ended, does not tolerate the disrupted taint,
// is no static pod, and is not stuck (waiting eviction).
func waitsFor(p cluster.Pod, now time.Time) bool {
	if p.Terminal() || p.Owner == cluster.OwnerNode || p.Terminating() && now.After(p.Deleting.Add(stuckAfter)) {
		return false
	}
	taint := cluster.Taint{Key: v1.TaintDisrupted, Effect: "NoSchedule"}
	return len(cluster.Untolerated([]cluster.Taint{taint}, p.Tolerations)) > 0
}

// atLater are the times as they may be when somebody looks again.
func (t DrainTimes) atLater() DrainTimes {
	t.looked = unwatched + min(t.PassTook, longestPass)
	return t
}

// forceDelete deletes a pod whose grace period does not fit before the deadline any more, or will not when somebody
// looks again: such a pod is deleted with all of its grace period, if nothing gentler can be done with it now. Of a pod
// that is being deleted already it only brings the end forward.
func (s *DrainStep) forceDelete(p cluster.Pod, t DrainTimes) bool {
	deadline := t.Deadline
	if deadline.IsZero() {
		return false
	}
	left := max(int64(deadline.Sub(t.Now)/time.Second), 1)
	grace := left
	if !p.Terminating() {
		grace = max(min(left, p.GraceSec), 1)
	}
	end := t.Now.Add(time.Duration(left) * time.Second)
	switch {
	case !p.Terminating() && !t.Now.Add(t.looked).After(deadline.Add(-graceOf(p))):
		return false
	case p.Terminating() && (!p.Deleting.After(deadline) || !p.Deleting.After(end)):
		return false
	}
	isThis := func(line string) bool { return strings.HasPrefix(line, p.Key()+": ") }
	s.Blocked = slices.DeleteFunc(s.Blocked, isThis)
	s.Waiting = append(slices.DeleteFunc(s.Waiting, isThis), p.Key()+": past the deadline of the node")
	s.Actions = append(s.Actions, plan.Action{Do: plan.DeletePod, Pod: p.Key(), Node: p.NodeName, GraceSec: grace,
		Reason: "Disrupted",
		Why:    fmt.Sprintf("the node ends at %s whatever the pod's budget says", deadline.UTC().Format(time.RFC3339))})
	return true
}

func graceOf(p cluster.Pod) time.Duration { return time.Duration(p.GraceSec) * time.Second }

// awaitsReplacement reports whether the pod may stay until its replacement is on its way: nobody who looks in time
// finds that its grace period does not fit any more.
func awaitsReplacement(p cluster.Pod, t DrainTimes) bool {
	return t.Now.Before(t.First) && (t.Deadline.IsZero() ||
		!t.First.Add(2*unwatched).After(t.Deadline.Add(-graceOf(p))))
}

// refused is said of a pod from its first refusal on, so that the words do not change with every try.
const refused = "the eviction API refuses it for now"

// requestEviction asks for the eviction of a pod unless something is in the way. It reports whether the pod is asked to
// go or has been.
func (s *DrainStep) requestEviction(p cluster.Pod, podBudgets *PodBudgets, t DrainTimes) bool {
	if p.Terminating() {
		s.Waiting = append(s.Waiting, p.Key()+": is shutting down")
		return true
	}
	if awaitsReplacement(p, t) {
		s.Waiting = append(s.Waiting, p.Key()+": stays until its replacement is on its way")
		return false
	}
	ask, podBudget, why := false, "", "is protected by karpenter.sh/do-not-disrupt"
	switch {
	case p.Protected(t.Now):
	case t.Now.Before(p.AskAgain):
		why = refused
	default:
		ask, podBudget, why = podBudgets.takeEviction(p)
	}
	if ask {
		s.Actions = append(s.Actions, plan.Action{Do: plan.Evict, Pod: p.Key(), Node: p.NodeName, Budget: podBudget})
		s.Held = s.Held || podBudget != ""
		if why = refused; p.AskAgain.IsZero() {
			s.Waiting = append(s.Waiting, p.Key()+": is being evicted")
			return true
		}
	}
	s.Waiting = append(s.Waiting, p.Key()+": "+why)
	s.Blocked = append(s.Blocked, p.Key()+": "+why)
	return ask
}

// drainGroup returns when the pod's turn is, from 0 on: pods come before critical ones, and within each of these those
// of DaemonSets last.
func drainGroup(p cluster.Pod) int {
	g := 0
	if p.Critical {
		g += 2
	}
	if p.Owner == cluster.OwnerDaemonSet {
		g++
	}
	return g
}
