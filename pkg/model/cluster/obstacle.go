package cluster

import (
	"fmt"
	"slices"
	"time"

	api "joiner.sh/pkg/api/v1"
)

// Obstacles tells which pods must not be disrupted now.
type Obstacles struct {
	now        time.Time
	podBudgets PodBudgetIndex
}

// Obstacles returns the obstacles that the snapshot's budgets and clock make.
func (s Snapshot) Obstacles() Obstacles {
	return Obstacles{now: s.Now, podBudgets: IndexPodBudgets(s.Budgets)}
}

// Words for what pods have against the disruption of their node.
const (
	Protected   = "protected" // by karpenter.sh/do-not-disrupt
	PodBudgeted = "pdb"       // by a PodDisruptionBudget
)

// Of returns what the pods of a node have against its disruption, as a word and a sentence; nothing, if they have
// nothing against it. Every active pod may ask not to be disrupted, and a budget counts for every pod that is evicted
// when its node is drained.
func (o Obstacles) Of(pods []*Pod) (word, why string) {
	for _, p := range pods {
		if p.Active() && p.Protected(o.now) {
			return Protected, fmt.Sprintf("pod %s carries %s", p.Key(), api.AnnotationDoNotDisrupt)
		}
	}
	for _, p := range pods {
		if !p.IsDrained() || !p.budgeted() {
			continue
		}
		mine := o.podBudgets.Selecting(p)
		if len(mine) > 1 {
			return PodBudgeted, fmt.Sprintf("pod %s has %d PodDisruptionBudgets, so that nobody may evict it", p.Key(),
				len(mine))
		}
		if len(mine) == 1 && mine[0].DisruptionsAllowed <= 0 && !mine[0].spares(p) {
			return PodBudgeted, fmt.Sprintf("PodDisruptionBudget %s does not let pod %s go now", mine[0], p.Key())
		}
	}
	if why := o.budgetOfSharers(pods); why != "" {
		return PodBudgeted, why
	}
	return "", ""
}

// Unevictable reports whether nobody may evict the pod as long as its budgets are as they are: one that selects it
// never allows it, or two select it, and the eviction API takes no such pod. A pod that a drain does not evict, but
// leaves to end with its node, is not held back.
func (o Obstacles) Unevictable(p *Pod) bool {
	if !p.IsDrained() || !p.budgeted() {
		return false
	}
	mine := o.podBudgets.Selecting(p)
	return len(mine) > 1 || len(mine) == 1 && mine[0].FullyBlocking && !mine[0].spares(p)
}

// BudgetBelow returns a PodDisruptionBudget that selects at least so many of the pods and does not let all of them be
// evicted at once, nil where none does.
func (o Obstacles) BudgetBelow(pods []*Pod, least int32) *PodDisruptionBudget {
	count := map[*PodDisruptionBudget]int32{}
	for _, p := range pods {
		if !p.IsDrained() || !p.budgeted() {
			continue
		}
		for _, b := range o.podBudgets.Selecting(p) {
			if b.spares(p) {
				continue
			}
			count[b]++
			if n := count[b]; n >= least && n > b.DisruptionsAllowed {
				return b
			}
		}
	}
	return nil
}

// budgeted reports whether budgets count for the pod. The eviction API asks none about a pod of which no container has
// started, such as one whose image cannot be pulled.
func (p *Pod) budgeted() bool { return p.Phase != "Pending" }

// IsDrained reports whether the pod is evicted when its node is drained: it is active, of a controller other than its
// node, and does not tolerate the taint that drained nodes have.
func (p *Pod) IsDrained() bool {
	taint := Taint{Key: api.TaintDisrupted, Effect: "NoSchedule"}
	return p.Active() && p.Owner != OwnerNode &&
		!slices.ContainsFunc(p.Tolerations, func(t Toleration) bool { return t.Tolerates(taint) })
}
