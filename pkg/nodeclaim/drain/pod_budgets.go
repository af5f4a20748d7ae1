package drain

import (
	"fmt"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

// PodBudgets holds what PodDisruptionBudgets still allow in one pass, over all the nodes that it drains. It
// spares the eviction API questions whose answer is known; what it lets pass, the API judges.
type PodBudgets struct {
	index cluster.PodBudgetIndex
	left  map[*cluster.PodDisruptionBudget]int32
	stirs map[*cluster.PodDisruptionBudget]bool // nil until asked: see ChangesSoon
}

// NewPodBudgets starts a pass with what the budgets allow now.
func NewPodBudgets(all []cluster.PodDisruptionBudget) *PodBudgets {
	b := &PodBudgets{index: cluster.IndexPodBudgets(all), left: map[*cluster.PodDisruptionBudget]int32{}}
	for i := range all {
		b.left[&all[i]] = all[i].DisruptionsAllowed
	}
	return b
}

// takeEviction reports whether to ask for the eviction of the pod, and of which budget that is, else why that would be
// in vain. A pod that is not running yet is under no budget; whether one that is not ready may go, the API knows
// better.
func (b *PodBudgets) takeEviction(p cluster.Pod) (ask bool, of, why string) {
	if p.Phase == "Pending" {
		return true, "", ""
	}
	mine := b.index.Selecting(&p)
	names := lists.Of(mine, func(one *cluster.PodDisruptionBudget) string { return one.Namespace + "/" + one.Name })
	slices.Sort(names)
	switch {
	case len(mine) > 1:
		return false, "", fmt.Sprintf("is under %d PodDisruptionBudgets (%s), and the eviction API takes no pod that has "+
			"more than one", len(mine), lists.Name(names, ", "))
	case len(mine) == 0:
		return true, "", ""
	case !p.Ready:
		return true, names[0], ""
	case b.left[mine[0]] <= 0:
		return false, "", "must wait for its PodDisruptionBudget " + names[0]
	}
	b.left[mine[0]]--
	return true, names[0], ""
}

// holds reports whether the pod may not be evicted now. It takes nothing of its budget.
func (b *PodBudgets) holds(p cluster.Pod, now time.Time) bool {
	if p.Terminating() || !b.concern(p, now) {
		return false
	}
	mine := b.index.Selecting(&p)
	return p.Protected(now) || len(mine) > 1 || p.Ready && b.left[mine[0]] <= 0
}

// Concern reports whether a pod that the drain waits for is protected or under a budget, so that the drain may have to
// wait long for it.
func (b *PodBudgets) Concern(pods []cluster.Pod, now time.Time) bool {
	return slices.ContainsFunc(pods, func(p cluster.Pod) bool { return waitsFor(p, now) && b.concern(p, now) })
}

func (b *PodBudgets) concern(p cluster.Pod, now time.Time) bool {
	return p.Protected(now) || p.Phase != "Pending" && len(b.index.Selecting(&p)) > 0
}

// startsWithin is the time for which a pod that is not ready is thought to be starting.
const startsWithin = 5 * time.Minute

// ChangesSoon reports whether a pod of the node is shutting down, or waits for a budget of which some pod comes or
// goes, so that it will allow more once that is ready. A drain of many pods under a budget that lets one go at a time
// has no other pods to wait for between two of them.
func (b *PodBudgets) ChangesSoon(node, all []cluster.Pod, now time.Time) bool {
	return slices.ContainsFunc(node, func(p cluster.Pod) bool {
		return waitsFor(p, now) && (p.Terminating() ||
			slices.ContainsFunc(b.index.Selecting(&p),
				func(one *cluster.PodDisruptionBudget) bool { return b.changingPodBudgets(all, now)[one] }))
	})
}

// changingPodBudgets tells of each budget whether some pod of it comes or goes.
func (b *PodBudgets) changingPodBudgets(all []cluster.Pod, now time.Time) map[*cluster.PodDisruptionBudget]bool {
	if b.stirs != nil {
		return b.stirs
	}
	b.stirs = map[*cluster.PodDisruptionBudget]bool{}
	for _, p := range all {
		if p.Terminal() || p.Terminating() && now.After(p.Deleting.Add(stuckAfter)) || !p.Terminating() &&
			(p.Ready || now.Sub(p.Created) > startsWithin) {
			continue
		}
		for _, one := range b.index.Selecting(&p) {
			b.stirs[one] = true
		}
	}
	return b.stirs
}
