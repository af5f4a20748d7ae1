package provision

import (
	"context"
	"errors"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// deleteSurplus deletes the NodeClaims that static pools have too many. One that fails does not stop the others; the
// next pass counts anew.
func (p *Controller) deleteSurplus(ctx context.Context, s cluster.Snapshot, removals []plan.Removal) (removed int,
	err error) {
	claims := map[string]cluster.Claim{}
	for _, c := range s.Claims {
		claims[c.Name] = c
	}
	var events []cluster.Event
	for _, r := range removals {
		c, ok := claims[r.Claim]
		if !ok || controllers.TooLateToBegin(ctx) {
			continue
		}
		may, mayErr := controllers.MayBegin(ctx, p.Log, removalAction(r))
		if err = errors.Join(err, mayErr); !may {
			continue
		}
		change := controllers.BeginChange(ctx, "delete NodeClaim", c.Name)
		deleteErr := p.Claims.DeleteClaim(ctx, c)
		if change.End(deleteErr); deleteErr != nil {
			err = errors.Join(err, controllers.IgnoreConflict(p.Log, deleteErr))
			continue
		}
		removed++
		events = append(events, cluster.Event{Kind: "NodeClaim", Name: c.Name, UID: c.UID, Reason: "Disrupted",
			Message: r.Why})
	}
	p.events().recordEvents(ctx, events[:min(len(events), maxEvents)])
	return removed, err
}
