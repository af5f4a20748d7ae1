package provision

import (
	"context"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// recordHeld says on a stored claim that its launch waits for room below the ceiling of the cluster.
func (l *claimLauncher) recordHeld(ctx context.Context, c cluster.Claim, why string) cluster.Claim {
	after := c
	l.p.TryAction(ctx, &l.p.failed, "NodeClaim "+c.Name, "hold claim "+c.Name, func() (err error) {
		after, err = l.recordUnlaunched(ctx, c, v1.ReasonCeilingReached, why)
		return err
	})
	return after
}

// withPace returns the snapshot with how many nodes this pass may launch, 0 for any number: fewer where the API server
// has refused requests as too many since the last pass of this process.
func withPace(c *Controller, s cluster.Snapshot) cluster.Snapshot {
	if c.Refusals == nil {
		return s
	}
	c.Process.pacing = c.Process.pacing.Next(c.Refusals(), c.Process.launched, c.Now())
	if s.Pace = c.Process.pacing.Most; s.Pace > 0 {
		c.Log.Warn("launches slowed down", "because", "the API server refuses requests as too many (429)", "mostNodes",
			s.Pace)
	}
	return s
}

// recordCeiling says on NodePools that the ceiling of the cluster keeps nodes from being launched.
func (w eventWriter) recordCeiling(ctx context.Context, s cluster.Snapshot, held []plan.Held) {
	var events []cluster.Event
	for _, h := range held[:min(len(held), controllers.MaxPoolEvents)] {
		if pool, ok := s.PoolOf(h.Pool); ok {
			events = append(events, cluster.Event{Kind: "NodePool", Name: pool.Name, UID: pool.UID, Warning: true,
				Reason: v1.ReasonCeilingReached, Message: "nodes are not launched: " + h.Why,
				Every: controllers.PoolEventEvery})
		}
	}
	w.recordEvents(ctx, events)
}
