package drain

import (
	"fmt"
	"slices"
	"strings"

	"joiner/pkg/cluster"
)

// Budgets is what PodDisruptionBudgets still allow in one pass, over all the nodes that it drains. It spares the eviction API
// questions whose answer is known; what it lets pass, the API judges.
type Budgets struct {
	all  []cluster.Budget
	left []int32
}

// NewBudgets starts a pass with what the budgets allow now.
func NewBudgets(all []cluster.Budget) *Budgets {
	b := &Budgets{all: all}
	for _, one := range all {
		b.left = append(b.left, one.DisruptionsAllowed)
	}
	return b
}

// take reports whether to ask for the eviction of the pod, and of which budget that is, else why that would be in vain. A pod that is not running yet is
// under no budget; whether one that is not ready may go, the API knows better.
func (b *Budgets) take(p cluster.Pod) (ask bool, of, why string) {
	if p.Phase == "Pending" {
		return true, "", ""
	}
	var mine []int
	var names []string
	for i, one := range b.all {
		if one.Namespace == p.Namespace && one.Selector.Matches(p.Labels) {
			mine, names = append(mine, i), append(names, one.Namespace+"/"+one.Name)
		}
	}
	slices.Sort(names)
	switch {
	case len(mine) > 1:
		return false, "", fmt.Sprintf("is under %d PodDisruptionBudgets (%s), and the eviction API takes no pod that has more than one", len(mine), strings.Join(names, ", "))
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
