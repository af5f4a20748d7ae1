package provision

import (
	"context"
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/provisioning/staticcapacity"
)

// isIdle reports whether there is nothing to do while no pod waits, and notes that.
func isIdle(ctx context.Context, c *Controller) (bool, error) {
	claims, err := c.Read.ListClaims(ctx)
	if err != nil || hasPendingClaim(claims) || slices.ContainsFunc(claims, cluster.Claim.Standby) ||
		c.hasReplaceRequest(claims) {
		return false, err
	}
	fixed, err := c.Read.StaticPools(ctx)
	if err != nil || staticcapacity.NeedsChange(cluster.Snapshot{Now: c.Now(), Pools: fixed, Claims: claims}) {
		return false, err
	}
	c.sum.NoteNothingPending()
	c.sum.NoteMissedHints(c.Hints, c.Now(), nil)
	return true, nil
}

// hasPendingClaim reports whether a claim waits for a launch or is being deleted, so that its pods may need another
// node.
func hasPendingClaim(claims []cluster.Claim) bool {
	return slices.ContainsFunc(claims,
		func(c cluster.Claim) bool { return !c.Deleting.IsZero() || !c.Is(v1.ConditionLaunched) })
}
