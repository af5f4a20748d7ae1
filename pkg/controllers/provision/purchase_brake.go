package provision

import (
	"context"
	"slices"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/scheduling/binpack"
)

// withPurchaseBrake notes nodes that were bought in vain, before the pass buys more of them, and returns the snapshot
// with the types that are left out for that. Where it cannot be noted the pass decides without.
func withPurchaseBrake(ctx context.Context, p *Controller, s cluster.Snapshot) cluster.Snapshot {
	if may, err := controllers.MayWrite(ctx); err != nil || !may {
		return s
	}
	unused, used := binpack.UnusedNodes(s)
	braked := slices.ContainsFunc(s.SoldOut, instancetypes.UnavailableOffering.LeavesOut)
	if len(unused) == 0 && (!braked || len(used) == 0) {
		return s
	}
	p.TryStep(ctx, &p.failed, "nodes that were bought in vain", func() error {
		marks, err := p.Brake.NoteUnusedNodes(ctx, unused, used)
		if err == nil {
			s.SoldOut = append(slices.DeleteFunc(slices.Clone(s.SoldOut), instancetypes.UnavailableOffering.LeavesOut),
				marks...)
		}
		return err
	})
	return s
}
