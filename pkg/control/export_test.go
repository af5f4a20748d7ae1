package control

import (
	"joiner/pkg/cluster"
	"joiner/pkg/disrupt"
	"joiner/pkg/pack"
)

// Deciding puts something in the place of the decision, which takes as long as a test wants.
func (d *Disrupt) Deciding(f func(cluster.Snapshot, disrupt.Memory, pack.Market, *pack.Depot) (disrupt.Plan, disrupt.Memory)) {
	d.decide = f
}
