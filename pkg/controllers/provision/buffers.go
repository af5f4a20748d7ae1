package provision

import (
	"context"
	"slices"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/buffers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// writeBufferStatus writes onto each buffer whether there is room for its pods. That is for people only: what fails is
// logged.
func (c *Controller) writeBufferStatus(ctx context.Context, s cluster.Snapshot, decision plan.Plan) {
	if len(s.Stopped) == 0 && !slices.ContainsFunc(s.Pods, func(p cluster.Pod) bool { return p.Virtual }) {
		return
	}
	err := controllers.WriteBufferStatuses(ctx, c.Buffers, buffers.RoomOf(s, decision), c.Now(), c.Log)
	if err != nil {
		c.Log.Warn("status of capacity buffers", "error", err)
	}
}

// placesReal reports whether the plan gives room that is there to a pod that exists and may go there soon. Room for
// virtual pods is nothing to wait for, nor is that for pods which still run on a node that has been drained for long.
func placesReal(s cluster.Snapshot, decision plan.Plan) bool {
	lingers := map[string]bool{}
	for _, node := range s.StateNodes() {
		lingers[node.Name()] = node.Claim != nil && node.Claim.BlockedForLong(s.Now)
	}
	stays := map[string]bool{}
	for i := range s.Pods {
		p := &s.Pods[i]
		stays[p.Key()] = p.Virtual || p.NodeName != "" && lingers[p.NodeName]
	}
	return slices.ContainsFunc(decision.Existing, func(e plan.Placement) bool { return !stays[e.Pod] })
}
