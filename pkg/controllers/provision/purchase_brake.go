package provision

import (
	"context"
	"slices"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/scheduling/binpack"
)

// unusedNodes are nodes that were bought in vain, as one process saw them.
type unusedNodes struct {
	noted   []instancetypes.UnavailableEntry // that follow from them
	unnoted []instancetypes.UnusedNode       // that could not be noted yet
}

// add adds nodes of this pass and returns all that are not noted yet, and the types that are left out for what the
// process saw.
func (u *unusedNodes) add(unused []instancetypes.UnusedNode, used []string, now time.Time) (
	unnoted []instancetypes.UnusedNode, out []instancetypes.UnavailableOffering) {
	u.noted, _ = instancetypes.NoteUnusedNodes(u.noted, unused, used, now)
	for _, m := range u.noted {
		if m.LeavesOut() && now.Before(m.Until) {
			out = append(out, m.UnavailableOffering)
		}
	}
	for _, old := range u.unnoted {
		again := func(n instancetypes.UnusedNode) bool { return n.Instance == old.Instance }
		if !slices.ContainsFunc(unused, again) && !slices.Contains(used, old.Instance) {
			unused = append(unused, old)
		}
	}
	return unused, out
}

// withPurchaseBrake notes nodes that were bought in vain, before the pass buys more of them, and returns the snapshot
// with the types that are left out for that. Where it cannot be noted, what this process saw counts.
func withPurchaseBrake(ctx context.Context, c *Controller, s cluster.Snapshot) cluster.Snapshot {
	if may, err := controllers.MayWrite(ctx); err != nil || !may {
		return s
	}
	unused, used := binpack.UnusedNodes(s)
	braked := slices.ContainsFunc(s.Unavailable, instancetypes.UnavailableOffering.LeavesOut)
	unused, seen := c.Process.unused.add(unused, used, c.Now())
	if len(unused) == 0 && (!braked || len(used) == 0) {
		return s
	}
	noted := c.TryStep(ctx, &c.failed, "nodes that were bought in vain", func() error {
		unavailable, err := c.Brake.NoteUnusedNodes(ctx, unused, used)
		if err == nil {
			seen = unavailable
		}
		return err
	})
	if c.Process.unused.unnoted = unused; noted {
		c.Process.unused.unnoted = nil
		s.Unavailable = slices.DeleteFunc(slices.Clone(s.Unavailable), instancetypes.UnavailableOffering.LeavesOut)
	}
	s.Unavailable = slices.Concat(s.Unavailable, seen)
	return s
}
