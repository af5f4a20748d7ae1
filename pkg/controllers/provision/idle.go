package provision

import (
	"context"
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/provisioning/staticcapacity"
)

// isIdle reports whether there is nothing to do while no pod waits, and notes that.
func isIdle(ctx context.Context, p *Controller) (bool, error) {
	claims, err := p.Read.ListClaims(ctx)
	if err != nil || hasPendingClaim(claims) || slices.ContainsFunc(claims, cluster.Claim.Standby) ||
		p.hasReplaceRequest(claims) {
		return false, err
	}
	fixed, err := p.Read.StaticPools(ctx)
	if err != nil || staticcapacity.NeedsChange(cluster.Snapshot{Now: p.Now(), Pools: fixed, Claims: claims}) {
		return false, err
	}
	p.sum.NoteNothingPending()
	p.sum.NoteMissedHints(p.Hints, p.Now(), nil)
	return true, nil
}

// hasPendingClaim reports whether a claim waits for a launch or is being deleted, so that its pods may need another
// node.
func hasPendingClaim(claims []cluster.Claim) bool {
	return slices.ContainsFunc(claims,
		func(c cluster.Claim) bool { return !c.Deleting.IsZero() || !c.Is(v1.ConditionLaunched) })
}
