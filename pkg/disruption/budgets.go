package disruption

import (
	"fmt"
	"slices"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
)

// Budget holds the number of nodes that may still go in this pass, by pool and reason.
type Budget struct {
	left      map[string]map[v1.DisruptionReason]int
	exhausted []BudgetExhausted
	blocked   map[string][]string // by pool: nodes whose drain their pods hold up
	tried     map[string]int      // by NodeRollout: launches of this pass with the revision that is tried
}

// newBudget counts what the budgets of all pools leave, given the nodes that are out of service already.
func newBudget(s cluster.Snapshot) *Budget {
	out := &Budget{left: map[string]map[v1.DisruptionReason]int{}, blocked: budgets.BlockedDrains(s)}
	counts := budgets.CountNodes(s)
	for _, p := range s.Pools {
		out.left[p.Name] = map[v1.DisruptionReason]int{}
		exhausted := BudgetExhausted{Pool: p.Name}
		for _, r := range []v1.DisruptionReason{v1.DisruptionDrifted, v1.DisruptionEmpty, v1.DisruptionUnderutilized} {
			n, err := budgets.AllowedDisruptions(p.Disruption, r, counts[p.Name].Total, s.Now)
			if err != nil {
				n = 0
			}
			if n == 0 && counts[p.Name].Total > 0 {
				exhausted.Reasons = append(exhausted.Reasons, r)
			}
			out.left[p.Name][r] = max(n-counts[p.Name].GoneFor(r), 0)
		}
		if len(exhausted.Reasons) > 0 {
			out.exhausted = append(out.exhausted, exhausted)
		}
	}
	slices.SortFunc(out.exhausted, func(a, b BudgetExhausted) int { return strings.Compare(a.Pool, b.Pool) })
	return out
}

// Left returns the number of nodes of the pool that may still go for the reason.
func (b *Budget) Left(pool string, reason v1.DisruptionReason) int { return b.left[pool][reason] }

// Take counts one node of the pool as gone, for every reason.
func (b *Budget) Take(pool string) {
	for r := range b.left[pool] {
		b.left[pool][r]--
	}
}

// limitSet returns as many of the nodes, in the order given, as the budgets of their pools allow together. It takes
// nothing; the others are given the reason that they stay.
func (b *Budget) limitSet(set []*stateNode, reason v1.DisruptionReason) []*stateNode {
	used := map[string]int{}
	var out []*stateNode
	for _, n := range set {
		if used[n.pool.Name] >= b.Left(n.pool.Name, reason) {
			why := b.refusal(n.pool.Name, reason)
			if reason == v1.DisruptionDrifted {
				n.refuseReplacement(why)
			} else {
				n.presumeNotConsolidated(why)
			}
			continue
		}
		used[n.pool.Name]++
		out = append(out, n)
	}
	return out
}

// refusal returns why a node stays that the budgets of its pool keep. It names one node that has been leaving for long.
func (b *Budget) refusal(pool string, reason v1.DisruptionReason) refusal {
	why := fmt.Sprintf("the budgets of its NodePool let no more nodes go now for reason %s", reason)
	if blocked := b.blocked[pool]; len(blocked) > 0 && reason != v1.DisruptionEmpty {
		why += fmt.Sprintf("; node %s counts, whose pods keep it from being drained", blocked[0])
	}
	return refusal{IneligibleBudget, why}
}
