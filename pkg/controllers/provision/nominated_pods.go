package provision

import (
	"context"
	"sync"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/model/plan"
)

// parallelTolerations caps the pods that are let onto held nodes at once.
const parallelTolerations = 16

// tolerateNominations lets pods onto the held nodes that are on their way for them. The pods of a new claim follow in
// the next pass, which sees the claim as stored. A pod that cannot be changed waits until its node is open to all: that
// is logged, and no error.
func (c *Controller) tolerateNominations(ctx context.Context, s cluster.Snapshot, decision plan.Plan) {
	wishes := nomination.TolerationsNeeded(s, decision)
	if len(wishes) == 0 {
		return
	}
	var mu sync.Mutex
	var first error
	failed := 0
	controllers.ForEach(parallelTolerations, wishes, func(_ int, w nomination.TolerationNeeded) {
		if err := c.Shield().Do("pod "+w.Pod.Key(), func() error {
			if may, err := controllers.MayBegin(ctx, c.Log, tolerationAction(w)); err != nil || !may {
				return err
			}
			return c.Holds.TolerateNomination(ctx, w.Pod, w.Taint)
		}); err != nil {
			mu.Lock()
			defer mu.Unlock()
			if failed++; first == nil {
				first = err
			}
		}
	})
	c.Log.Info("added tolerations to nominated pods", "pods", len(wishes)-failed)
	if failed > 0 {
		c.Log.Warn("cannot add tolerations to nominated pods, which wait until their nodes are open to all", "pods",
			failed, "because", first)
	}
}
