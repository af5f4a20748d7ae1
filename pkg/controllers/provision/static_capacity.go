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
func (c *Controller) deleteSurplus(ctx context.Context, s cluster.Snapshot, removals []plan.Removal) (removed int) {
	claims := lists.Index(s.Claims, func(claim cluster.Claim) string { return claim.Name })
	var events []cluster.Event
	for _, r := range removals {
		claim, ok := claims[r.Claim]
		if !ok || controllers.TooLateToBegin(ctx) {
			continue
		}
		c.TryAction(ctx, &c.failed, "NodeClaim "+claim.Name, removalAction(r), func() error {
			if err := c.Claims.DeleteClaim(ctx, claim); err != nil {
				return err
			}
			removed++
			events = append(events, cluster.Event{Kind: "NodeClaim", Name: claim.Name, UID: claim.UID,
				Reason: "Disrupted", Message: r.Why})
			return nil
		})
	}
	c.events().recordEvents(ctx, events[:min(len(events), maxEvents)])
	return removed
}
