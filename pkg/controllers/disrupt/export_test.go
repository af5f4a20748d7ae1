package disrupt

import (
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/binpack"
)

// Deciding puts something in the place of the decision, which takes as long as a test wants.
func (c *Controller) Deciding(f func(cluster.Snapshot, disruption.Memory, binpack.Offerings, *disruption.Cache) (disruption.Plan, disruption.Memory)) {
	c.decide = f
}
