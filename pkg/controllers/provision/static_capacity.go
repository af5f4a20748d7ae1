package provision

import (
	"context"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
)

// deleteSurplus deletes the NodeClaims that static pools have too many. One that fails does not stop the others; the
// next pass counts anew.
func (p *Controller) deleteSurplus(ctx context.Context, s cluster.Snapshot, removals []plan.Removal) (removed int) {
	claims := lists.Index(s.Claims, func(c cluster.Claim) string { return c.Name })
	var events []cluster.Event
	for _, r := range removals {
		c, ok := claims[r.Claim]
		if !ok || controllers.TooLateToBegin(ctx) {
			continue
		}
		p.TryStep(ctx, &p.failed, "NodeClaim "+c.Name, func() error {
			if may, err := controllers.MayBegin(ctx, p.Log, removalAction(r)); err != nil || !may {
				return err
			}
			if err := p.Claims.DeleteClaim(ctx, c); err != nil {
				return err
			}
			removed++
			events = append(events, cluster.Event{Kind: "NodeClaim", Name: c.Name, UID: c.UID, Reason: "Disrupted",
				Message: r.Why})
			return nil
		})
	}
	p.events().recordEvents(ctx, events[:min(len(events), maxEvents)])
	return removed
}
