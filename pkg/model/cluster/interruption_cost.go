package cluster

import (
	"math/bits"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
)

// InterruptionCost is what interruptions of spot nodes are reckoned to cost. It is zero where spot pools are not
// learned. An ordinary pod is the mean of the cluster's, rounded up to a power of two, so that one pod more or less
// changes no price.
func (s Snapshot) InterruptionCost() instancetypes.InterruptionCost {
	if !(s.Rules.PodInterruptionCostUSD > 0) || s.Catalog.Spot == nil {
		return instancetypes.InterruptionCost{}
	}
	var sum resources.List
	n := int64(0)
	for i := range s.Pods {
		p := &s.Pods[i]
		if !p.Terminal() && p.Owner != OwnerDaemonSet && p.Owner != OwnerNode {
			sum.CPU, sum.Memory, n = sum.CPU+p.Need.CPU, sum.Memory+p.Need.Memory, n+1
		}
	}
	c := instancetypes.InterruptionCost{PodUSD: s.Rules.PodInterruptionCostUSD}
	if n > 0 {
		c.Pod = resources.List{CPU: powerAbove(sum.CPU / n), Memory: powerAbove(sum.Memory / n)}
	}
	return c
}

// powerAbove is the least power of two that is not below n, 0 for none.
func powerAbove(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return 1 << bits.Len64(uint64(n-1))
}
